// Scrolls down to the page's initial end: images that load only when they come into view would be missing in print.
async () => {
  for (const image of document.querySelectorAll('[loading=lazy]')) image.loading = 'eager';
  const end = document.documentElement.scrollHeight;
  for (let y = 0, steps = 0; y < end && steps < 50; y += innerHeight, steps++) {
    scrollTo(0, y);
    await new Promise(resolve => setTimeout(resolve, 10));
  }
  scrollTo(0, 0);
  await Promise.all([...document.images].map(image =>
    image.complete || new Promise(resolve => { image.onload = image.onerror = resolve; })));
  await document.fonts.ready;
}
