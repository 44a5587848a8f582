"""What `bench.scale` measures with, draws and writes."""
