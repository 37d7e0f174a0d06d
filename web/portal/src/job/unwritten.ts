// Why a job that has no pods has no log.

import type { PastJob } from '@kubecast/sdk';
import type { Unwritten } from '../pods/unwritten.ts';
import { stateName } from '../state/texts.ts';
import { whyNow } from '../state/why.ts';
import { ends } from './life.ts';
import { t } from './texts.ts';

/** @param there the job is still in its cluster */
export function unwrittenOf(past: PastJob | undefined, there: boolean): Unwritten {
  if (past && ends.has(past.state)) return { text: neverRan(past) ? t.unwritten.never : t.unwritten.lost };
  if (past?.state === 'Running') return { text: t.unwritten.noPods };
  return past ? { text: t.unwritten.waits(stateName(past.state)), why: whyNow(past) } : { text: there ? t.unwritten.noPods : t.unwritten.noJob };
}

/** A job that was found late has no beginning and no wait that is known, and may have run for hours. */
const neverRan = ({ startedAt, waited, pods = [] }: PastJob): boolean => startedAt === undefined && waited !== undefined && !pods.some((run) => run.startedAt !== undefined);
