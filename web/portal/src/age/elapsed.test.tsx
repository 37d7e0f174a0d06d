import type { Elapsed } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { render } from '../../../mock/render.ts';
import { AsOf } from './Age.tsx';
import { Lasted, ranLonger, timesAfter, timesUntil } from './Elapsed.tsx';

const shown = (of: Elapsed | undefined, least = false): string | null => {
  const page = render(
    <AsOf.Provider value={100_000}>
      <Lasted of={of} least={least} />
    </AsOf.Provider>,
  );
  const { textContent } = page.element;
  page.unmount();
  return textContent;
};

test('a job that never ran has no run time, and a wait that nobody saw is not told', () => {
  expect(shown(undefined)).toBe('–');
  expect(shown({ over: 71_000, since: undefined })).toBe('71s');
  expect(shown({ over: 5_000, since: 90_000 })).toBe('15s'); // of two runs, the second of which goes on
});

test('a run whose beginning nobody saw is told as the least that it can have been', () => {
  const [over, since] = [3_000, undefined];
  const late = timesAfter(waits, to('Running', 4_000, true));
  expect(ranLonger(late)).toBe(true);
  expect(ranLonger(timesAfter(late, to('Failed', 7_000)))).toBe(true);
  expect(ranLonger(timesAfter(waits, to('Running', 4_000)))).toBe(false);
  expect(ranLonger(waits)).toBe(false);
  expect(ranLonger({ waited: undefined, ran: undefined })).toBe(false);
  expect(ranLonger(undefined)).toBe(false);
  expect(shown({ over, since }, true)).toBe('≥ 3s');
  expect(shown({ over: 0, since: 90_000 }, true)).toBe('≥ 10s');
  expect(shown(undefined, true)).toBe('–');
});

const waits = { waited: { over: 0, since: 1_000 }, ran: undefined };
const to = (state: string, at: number, late = false) => ({ to: state, at, late });

test('what was told since a job was read changes its times as the gateway would tell them', () => {
  const runs = timesAfter(waits, to('Running', 4_000));
  expect(runs).toEqual({ waited: { over: 3_000, since: undefined }, ran: { over: 0, since: 4_000 } });
  const again = timesAfter(timesAfter(runs, to('Retrying', 6_000)), to('Running', 7_000));
  expect(again).toEqual({ waited: { over: 3_000, since: undefined }, ran: { over: 2_000, since: 7_000 } });
  expect(timesAfter(again, to('Failed', 8_000)).ran).toEqual({ over: 3_000, since: undefined });
  expect(timesAfter(waits, to('Pending', 4_000))).toEqual(waits);
});

test('a job that ends without having run has waited until then, unless nobody saw it', () => {
  expect(timesAfter(waits, to('Failed', 4_000))).toEqual({ waited: { over: 3_000, since: undefined }, ran: undefined });
  expect(timesAfter(waits, to('Failed', 4_000, true))).toEqual({ waited: undefined, ran: undefined });
  expect(timesAfter(waits, to('Running', 4_000, true)).waited).toBeUndefined();
  expect(timesAfter(waits, to('Succeeded', 4_000))).toEqual({ waited: undefined, ran: undefined }); // it must have run
});

test('a run whose end nobody saw has no time that is made up, until the gateway says whether the job claims one', () => {
  const runs = { waited: { over: 3_000, since: undefined }, ran: { over: 0, since: 4_000 } };
  expect(timesAfter(runs, to('Deleted', 500_000, true)).ran).toBeUndefined();
  expect(timesAfter({ ...runs, ran: { over: 2_000, since: undefined } }, to('Deleted', 500_000, true)).ran).toEqual({ over: 2_000, since: undefined });
});

test('while the history is away, a run ends with what the job says of its end, and a wait is not taken for one', () => {
  const runs = { waited: { over: 3_000, since: undefined }, ran: { over: 1_000, since: 4_000 } };
  expect(timesUntil(runs, 9_000)).toEqual({ waited: runs.waited, ran: { over: 6_000, since: undefined } });
  expect(timesUntil(waits, 9_000)).toEqual({ waited: undefined, ran: undefined });
});
