"""Questions to passages, in stages that are named, switchable and recorded."""
