// When the page hears of new data: with a frame, and never so often that it does nothing else.

import type { Schedule } from '@kubecast/sdk';

const leastGap = 100;
/** How long a visible page waits for a frame, in milliseconds. A browser gives one that it takes to be covered few frames, or none, and does not say so. */
const patience = 1_000;

/**
 * Flushes in an animation frame. A flush renders; what it costs is measured, and the next one waits for
 * at least three times as long, so that a table of fifty thousand rows in a busy cluster leaves most of
 * the time to scrolling and typing. A hidden tab has no frames and catches up when it is shown; one that is visible
 * and is given none goes on without.
 */
export function frameSchedule(): Schedule {
  let notBefore = 0;
  return (flush) => {
    const inFrame = (): void => {
      const render = (): void => {
        clearInterval(late);
        cancelAnimationFrame(frame);
        const began = performance.now();
        flush();
        // After React's synchronous render and the paint that follows this frame.
        setTimeout(() => {
          const now = performance.now();
          notBefore = now + Math.max(leastGap, 3 * (now - began));
        });
      };
      const frame = requestAnimationFrame(render);
      const late = setInterval(() => document.hidden || render(), patience);
    };
    const wait = notBefore - performance.now();
    if (wait > 0) setTimeout(inFrame, wait);
    else inFrame();
  };
}
