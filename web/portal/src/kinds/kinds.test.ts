import { expect, test } from 'vitest';
import { cellsOf } from './columns.ts';
import { kindNamed, kindsIn } from './discovery.ts';

const resource = (name: string, more: object = {}) => ({ resource: name, responseKind: { kind: name.toUpperCase() }, scope: 'Namespaced', verbs: ['get', 'list', 'watch'], ...more });

test('a kind of several versions is there once, at the preferred one; what cannot be followed is none', () => {
  const kinds = kindsIn({
    items: [
      { metadata: { name: 'example.org' }, versions: [{ version: 'v2', resources: [resource('widgets')] }, { version: 'v1', resources: [resource('widgets'), resource('gears', { scope: 'Cluster' })] }] },
      { metadata: { name: 'metrics.k8s.io' }, versions: [{ version: 'v1', resources: [resource('pods', { verbs: ['get', 'list'] })] }] },
      { metadata: { name: 'empty.org' } },
    ],
  });
  expect(kinds.map(({ id, version, namespaced }) => [id, version, namespaced])).toEqual([
    ['widgets.example.org', 'v2', true],
    ['gears.example.org', 'v1', false],
  ]);
  expect(kindsIn({})).toEqual([]);
  expect(kindNamed(kinds, 'example.org/v1', 'WIDGETS')?.id).toBe('widgets.example.org');
  expect(kindNamed(kinds, 'other.org/v1', 'WIDGETS')).toBeUndefined();
});

test("an own column stays with its object's cell, whatever columns are left out before it", () => {
  const { columns, rows } = cellsOf({
    columnDefinitions: [
      { name: 'Name', type: 'string', format: 'name' },
      { name: 'Wide', type: 'string', priority: 1 },
      { name: 'Replicas', type: 'integer' },
      { name: 'Age', type: 'date' },
      { name: 'Last', type: 'string' },
    ],
    rows: [{ cells: ['a', 'wide', 3, '5m', null], object: { metadata: { uid: 'u', resourceVersion: '7' } } }],
  });
  expect(columns).toEqual([
    { id: 'replicas', name: 'Replicas', numeric: true, wide: false },
    { id: 'last', name: 'Last', numeric: false, wide: false },
  ]);
  expect(rows.get('u')).toEqual({ name: '', namespace: '', created: '', version: '7', cells: ['3', ''] });
});

test('a table without rows has null for them where its kind has no columns of its own', () => {
  expect(cellsOf({ columnDefinitions: [{ name: 'Name', type: 'string' }], rows: null }).rows.size).toBe(0);
});
