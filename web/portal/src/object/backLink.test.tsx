import { afterEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { keepOrigin } from '../navigation/origin.ts';
import { parseView } from '../view/view.ts';
import { BackLink } from './BackLink.tsx';

let page: Rendered;
afterEach(() => {
  page.unmount();
  history.replaceState(null, '', '#');
  vi.restoreAllMocks();
});

/** The link on the page of a job, to which somebody has come from another page. */
function linkFrom(from: string | undefined, at = '#jobs/n/train'): HTMLAnchorElement {
  history.replaceState(from === undefined ? { seen: true, steps: 0 } : { seen: true, from, steps: 1 }, '', at);
  page = render(<BackLink view={parseView(at)} table={{ href: '#jobs?q=x', title: 'Jobs' }} />);
  const link = page.element.querySelector('a');
  if (!link) throw new Error('there is no link');
  return link;
}
const said = (from: string | undefined, at?: string): readonly [string | null, string | null] => {
  const link = linkFrom(from, at);
  const all = [link.textContent, link.getAttribute('href')] as const;
  page.unmount();
  return all;
};

test('the link back names the page from which somebody came, and leads there', () => {
  expect(said('')).toEqual(['← Mine', '#mine']);
  expect(said('#history?state=Failed&since=24h')).toEqual(['← History', '#history?state=Failed&since=24h']);
  expect(said('#overview')).toEqual(['← Overview', '#overview']);
  expect(said('#jobs?state=Failed')).toEqual(['← Jobs', '#jobs?state=Failed']);
  expect(said('#kinds/cronjobs.batch?ns=a')).toEqual(['← cronjobs.batch', '#kinds/cronjobs.batch?ns=a']);
  expect(said('#kinds/cronjobs.batch/n/nightly')).toEqual(['← nightly', '#kinds/cronjobs.batch/n/nightly']);
  expect(said('#jobs/n/train@2', '#jobs/n/train@1')).toEqual(['← The other run', '#jobs/n/train@2']);
  expect(said('#jobs/m/train@2', '#jobs/n/train@1')).toEqual(['← train', '#jobs/m/train@2']);
});

test('a page that is there before its entry knows from where somebody came names that page as soon as it does', () => {
  const link = linkFrom(undefined);
  history.replaceState(null, '', '#jobs/n/train');
  page.act(() => void keepOrigin({ here: { seen: true, steps: 0 } }, '#history?state=Failed'));
  expect([link.textContent, link.getAttribute('href')]).toEqual(['← History', '#history?state=Failed']);
});

test('a cluster is named where it is another one', () => {
  expect(said('#jobs?cluster=west', '#jobs/n/train')[0]).toBe('← Jobs · west');
  expect(said('#jobs?cluster=west', '#jobs/n/train?cluster=west')[0]).toBe('← Jobs');
});

test('a page that was opened by a link leads to the table of its kind', () => {
  expect(said(undefined)).toEqual(['← Jobs', '#jobs?q=x']);
});

test('a click goes back, and one that opens another tab does as links do', () => {
  const go = vi.spyOn(history, 'go').mockReturnValue(undefined);
  const link = linkFrom('#mine');
  const click = (more: MouseEventInit): boolean => !link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, ...more }));
  expect([click({}), go.mock.calls]).toEqual([true, [[-1]]]);
  expect([click({ ctrlKey: true }), go.mock.calls.length]).toEqual([false, 1]);
});
