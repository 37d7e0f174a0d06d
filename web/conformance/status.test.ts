// The mock says of objects what the gateway says of them, by one file of cases for both.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MockGateway, type Draft } from '../mock/index.ts';
import { derivesStatus } from '../mock/status.ts';

const cases = JSON.parse(readFileSync(new URL('../../internal/objectstatus/testdata/status.json', import.meta.url), 'utf8')) as readonly { readonly kind: string; readonly want: string; readonly object: Draft }[];

const ask = async (gateway: MockGateway, query: string, kind: string) => {
  const [plural = '', ...group] = kind.split('.');
  const response = await gateway.fetch(`/${group.length > 0 ? `apis/${group.join('.')}` : 'api'}/v1/${plural}?${query}`, { headers: { Authorization: 'Bearer let-me-in' } });
  return { code: response.status, ...((await response.json()) as { items?: { $status?: string }[]; counts?: { value: string }[]; message?: string }) };
};

test.each(cases)('$kind: $want, from $object', async ({ kind, want, object }) => {
  const gateway = new MockGateway();
  const [plural = '', ...group] = kind.split('.');
  gateway.cluster.put(plural, { apiVersion: group.length > 0 ? `${group.join('.')}/v1` : 'v1', ...object });
  if (!derivesStatus(kind)) {
    expect(await ask(gateway, 'fields=$status', kind)).toMatchObject({ code: 501, message: expect.stringMatching(/^The mock derives no \$status of .*\.$/) as string });
    gateway.cluster.put(plural, { apiVersion: `${group.join('.')}/v1`, ...object, $status: want });
  }
  const { items: [first] = [] } = await ask(gateway, 'fields=$status', kind);
  expect([first?.$status, Object.keys(first ?? {}).at(-1)]).toEqual([want, '$status']);
  expect((await ask(gateway, 'countBy=$status', kind)).counts).toEqual([{ value: want, count: 1 }]);
  expect((await ask(gateway, `fieldSelector=$status!=${want.replaceAll(',', '\\,')}`, kind)).items).toEqual([]);
  expect((await ask(gateway, '', kind)).items?.[0]).not.toHaveProperty('$status');
});

test.each([
  ['fields=$ready', 400],
  ['fields=metadata.name,$requests.cpu', 400],
  ['fieldSelector=$ready=0', 501],
  ['sort=-$restarts', 501],
  ['countBy=$restarts', 501],
])('a number of pods that the mock does not derive is refused: %s', async (query, code) => {
  const gateway = new MockGateway();
  gateway.cluster.put('pods', { metadata: { namespace: 'a', name: 'b' } });
  expect(await ask(gateway, query, 'pods')).toMatchObject({ code, message: expect.stringContaining('derives no numbers') as string });
});
