// Text of a wall is as large as the screen allows: nobody scrolls there.

/** Below it nothing could be read from a distance; what does not fit even so is scrolled to. */
const smallest = 0.5;
/** So often the range is halved: to within two per cent. */
const halvings = 5;

/** Makes the text of an element smaller until nothing of it is hidden, and again whenever its size or its content changes. Returns what ends that. */
export function fit(element: HTMLElement): () => void {
  const fits = (scale: number): boolean => {
    element.style.setProperty('--fit', String(scale));
    return element.scrollHeight <= element.clientHeight;
  };
  const measure = (): void => {
    if (fits(1)) return;
    let [low, high] = [smallest, 1];
    for (let n = 0; n < halvings; n++) {
      const middle = (low + high) / 2;
      if (fits(middle)) low = middle;
      else high = middle;
    }
    fits(low);
  };
  let due = 0;
  const soon = (): void => {
    cancelAnimationFrame(due);
    due = requestAnimationFrame(measure);
  };
  const changes = new MutationObserver(soon);
  changes.observe(element, { childList: true, characterData: true, subtree: true });
  addEventListener('resize', soon);
  measure();
  return () => {
    cancelAnimationFrame(due);
    changes.disconnect();
    removeEventListener('resize', soon);
  };
}
