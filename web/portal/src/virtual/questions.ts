// What of a table the gateway can sort by, by paths of the objects.

import { statusPath } from '../filters/status.ts';
import { queuePath } from '../jobs/fields.ts';
import type { TableName } from '../view/view.ts';
import type { Sort } from '../table/sort.ts';

const owner = 'metadata.labels.kubecast\\.io/owner';

/** The path of each column that can be sorted by. A column of which small values mean much, such as an age, begins with `-`. */
export const sortable: Readonly<Record<TableName, Readonly<Record<string, string>>>> = {
  jobs: { name: 'metadata.name', namespace: 'metadata.namespace', state: statusPath, owner, queue: queuePath, progress: 'status.succeeded', duration: '-status.startTime', age: '-metadata.creationTimestamp' },
  pods: { name: 'metadata.name', namespace: 'metadata.namespace', state: statusPath, ready: '$ready', restarts: '$restarts', node: 'spec.nodeName', owner, age: '-metadata.creationTimestamp' },
};

/** The paths for a sort; what cannot be sorted by is by age. */
export function pathsOf(table: TableName, { column, descending }: Sort): readonly string[] {
  const sort = sortable[table];
  const path = (Object.hasOwn(sort, column) ? sort[column] : sort['age']) ?? '';
  return [descending ? opposite(path) : path];
}

const opposite = (path: string): string => (path.startsWith('-') ? path.slice(1) : `-${path}`);

/** So many places are asked for at once, of which those in sight are somewhere in the middle. */
export const windowSize = 200;
const step = windowSize / 4;

/** Where the places begin that are asked for when these are in sight. Moves in steps, so that scrolling does not ask with each row. */
export function windowOf(first: number, total: number): number {
  const last = Math.max(0, Math.ceil((total - windowSize) / step) * step);
  return Math.min(last, Math.max(0, Math.floor(first / step) * step - step));
}
