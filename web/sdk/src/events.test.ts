import { describe, expect, test } from 'vitest';
import { decodeFrame, UnreadableFrame } from './events.ts';

const decode = (event: string, data: string) => decodeFrame({ event, data, id: 'e.1' });

test('what may be seen is read with what is seen by its name only, and without what is no namespace', () => {
  expect(decode('pods.narrowed', '{"namespaces":["a",1],"names":{"b":["one",2],"":["two"]}}')).toMatchObject({
    type: 'narrowed',
    namespaces: ['a'],
    names: { b: ['one'], '': ['two'] },
  });
  expect(decode('widened', '{"all":true,"namespaces":[]}')).toMatchObject({ type: 'widened', namespaces: undefined, names: {} });
});

describe('names', () => {
  test.each([
    ['jobs.synced', 'jobs', 'synced'],
    ['synced', '', 'synced'],
  ])('%s belongs to watch %j', (event, watch, type) => {
    expect(decode(event, '{"resourceVersion":"7","count":0}')).toEqual({ watch, type, id: 'e.1', resourceVersion: '7' });
  });

  test('an event of a newer server is passed on, whatever its data', () => {
    expect(decode('jobs.frobbed', 'not JSON')).toEqual({ watch: 'jobs', type: 'unknown', id: 'e.1', name: 'frobbed', data: 'not JSON' });
  });
});

describe('data that is not what the event promises is never taken for it', () => {
  test.each([
    ['added', '{"metadata":'],
    ['added', '[]'],
    ['added', 'null'],
    ['added', '{"metadata":{"name":"a"}}'],
    ['deleted', '{"metadata":{"uid":"u"}}'],
    ['patched', '{"uid":"u","resourceVersion":"1"}'],
    ['patched', '{"uid":"u","patch":{}}'],
    ['synced', '[]'],
    ['bookmark', '7'],
    ['narrowed', '{"namespaces":null}'],
    ['narrowed', '{"namespaces":[],"names":["a"]}'],
    ['narrowed', '{"namespaces":[],"names":{"a":"one"}}'],
    ['widened', '{"all":true,"names":{"a":null}}'],
    ['goodbye', ''],
  ])('%s %s', (event, data) => {
    expect(() => decode(event, data)).toThrow(UnreadableFrame);
  });
});

test('times are milliseconds; a missing one is now, not 1970', () => {
  expect(decode('stale', '{"since":"2030-01-01T00:00:00Z","reason":"x"}')).toMatchObject({ since: Date.UTC(2030, 0, 1), reason: 'x' });
  const before = Date.now();
  expect((decode('expiring', '{}') as { at: number }).at).toBeGreaterThanOrEqual(before);
});
