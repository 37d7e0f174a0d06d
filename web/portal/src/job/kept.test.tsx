// With the clock that tells how long ago something was.
import type { Kubecast, Run } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { afterEach, expect, test, vi } from 'vitest';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { formatWhen } from '../texts/when.ts';
import { KeptLogs } from './Kept.tsx';
import { jobs } from './resources.ts';

vi.mock('../texts/clock.ts', async (load) => ({ ...(await load<object>()), clock: 'relative' }));

let kc: Kubecast;
let page: Rendered;
eachPage((made) => ({ kc } = made));
afterEach(() => page.unmount());

test('pods of one name are told apart where it is told how long ago things were, too', () => {
  const hour = 3_600_000;
  const ended = Date.now() - 73 * hour;
  expect(formatWhen(ended)).toBe(formatWhen(ended - hour));
  const run = { name: 'worker-0', reason: 'Preempted', log: true, createdAt: 1 };
  const pods = [{ ...run, uid: 'p2', endedAt: ended }, { ...run, uid: 'p1', endedAt: ended - hour }] as unknown as readonly Run[];
  page = render(
    <KubecastProvider client={kc}>
      <KeptLogs of={jobs} namespace="n" name="j" uid="u" first={{ title: 'now', content: '' }} pods={pods} />
    </KubecastProvider>,
  );
  const named = [...page.element.querySelectorAll('option')].slice(1).map(({ textContent }) => textContent);
  expect(named).toHaveLength(2);
  expect(new Set(named).size, named.join(' | ')).toBe(2);
});
