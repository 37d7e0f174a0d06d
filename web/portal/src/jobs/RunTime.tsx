import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { ranSince, type JobRow } from './job.ts';

/** How long a job has run, as far as the object says it; without a history nobody knows better. */
export function RunTime({ row }: { readonly row: JobRow<string> }): ReactNode {
  return <Age since={ranSince(row)} until={row.finished} />;
}
