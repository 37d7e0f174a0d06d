import { act, type ReactNode } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { page, Waiting } from './page.tsx';

let shown: Rendered;
afterEach(() => shown.unmount());

const says = (text: string): Promise<void> =>
  vi.waitFor(async () => {
    await act(() => new Promise((resolve) => setTimeout(resolve)));
    expect(shown.element.textContent).toContain(text);
  }, 60_000);

test('a page that could not be loaded is loaded once the network is back, or when it is gone to again', async () => {
  let away = true;
  const Part = page(() => (away ? Promise.reject(new Error('offline')) : Promise.resolve(() => <p>it is here</p>)));
  const Other = page(() => (away ? Promise.reject(new Error('offline')) : Promise.resolve(() => <p>so is this</p>)));
  const draw = (node: ReactNode): void => void (shown = render(<Waiting>{node}</Waiting>));
  draw(<Part />);
  await says('could not be loaded');
  away = false;
  act(() => void window.dispatchEvent(new Event('online')));
  await says('it is here');
  shown.unmount();

  away = true;
  draw(<Other />);
  await says('could not be loaded');
  shown.unmount();
  away = false;
  draw(<Other />);
  await says('so is this');
});
