import { afterEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { parseView } from '../view/view.ts';
import { ObjectFrame } from './ObjectFrame.tsx';

let page: Rendered;
afterEach(() => {
  page.unmount();
  vi.restoreAllMocks();
});

test('where facts stand above the tabs, a touch leads past them to the one that is shown', () => {
  const watched = { status: 'live' as const, error: undefined, retry: () => undefined };
  const tabs = ['logs', 'yaml'].map((id) => ({ id, title: id, content: () => id }));
  page = render(<ObjectFrame view={parseView('#jobs/n/train?tab=yaml')} namespace="n" name="train" table={{ href: '#jobs', title: 'Jobs' }} command="describe job" watched={watched} there missing="" facts="" tabs={tabs} />);
  const into = vi.spyOn(Element.prototype, 'scrollIntoView').mockReturnValue(undefined);
  const button = page.element.querySelector<HTMLButtonElement>('.to-tabs');
  expect(button?.textContent).toBe('yaml ↓');
  page.act(() => button?.click());
  expect(into.mock.contexts).toEqual([page.element.querySelector('.job-main')]);
  expect(document.activeElement?.getAttribute('aria-selected')).toBe('true');
});
