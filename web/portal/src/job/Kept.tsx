// What is kept of a job that has ended: the end of its log, once its pods are gone, and what it was told to do, once it is gone itself.

import { AskedError, pastJobs, pastLog, pathOf, type Kubecast, type KubeObject, type PastJob, type Resource, type Run } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo, useState, type ReactNode } from 'react';
import { exactAnswerTo } from '../exact/exact.ts';
import { KeptLines } from '../log/Kept.tsx';
import { t as log } from '../log/texts.ts';
import { useReading, type Read } from '../polling/polling.ts';
import { stateName } from '../state/texts.ts';
import { mayBeExplained, untilExplained } from '../state/why.ts';
import { formatDate } from '../texts/format.ts';
import { marks } from '../texts/punctuation.ts';
import { Yaml } from './Yaml.tsx';
import { t } from './texts.ts';

interface Of {
  readonly of: Resource<KubeObject>;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * The job of a uid as the history has it; it is read again with each other `signal`, which says that it may have changed, and now and then while it goes on.
 * Without a uid nothing is read.
 */
export function usePastJob(of: Resource<KubeObject>, namespace: string, name: string, uid: string | undefined, signal: string | undefined): Read<PastJob | undefined> {
  const kc = useKubecast();
  const read = useMemo(
    () => (): Promise<PastJob | undefined> => (uid === undefined ? Promise.resolve(undefined) : pastJobs(kc, of, { namespace, name, uid }).then(({ items }) => items[0])),
    [kc, of, namespace, name, uid],
  );
  return useReading(read, signal, 1_000, untilReadAgain);
}

/** What changes of a job although it stays in its state: what it has used, why it waits, and for a while why it ended. */
export function untilReadAgain(job: PastJob | undefined): number | undefined {
  switch (job?.state) {
    case undefined:
    case 'Succeeded':
    case 'Deleted':
      return undefined;
    case 'Failed':
    case 'Cancelled':
      return mayBeExplained(job) ? untilExplained : undefined;
    case 'Running':
      return 15_000;
    default:
      return 5_000;
  }
}

/** The job's pods of which the end of the log is kept, and that are not there. */
export const lostPods = (past: PastJob | undefined, there: readonly { readonly uid: string }[] = []): readonly Run[] =>
  (past?.pods ?? []).filter((run) => run.log && !there.some(({ uid }) => uid === run.uid));

interface KeptLogsProps extends Of {
  /** What is shown first: a log that goes on, or the end of the job's own; undefined: there is neither. */
  readonly first: { readonly title: string; readonly content: ReactNode } | undefined;
  /** See {@link lostPods}; not empty. */
  readonly pods: readonly Run[];
}

/** A choice between the logs of pods that are gone and what else there is. */
export function KeptLogs({ first, pods, ...of }: KeptLogsProps): ReactNode {
  const [chosen, choose] = useState('');
  const pod = pods.find(({ uid }) => uid === chosen) ?? (first ? undefined : pods[0]);
  return (
    <>
      <label className="job-kept">
        {t.kept.whose}{' '}
        <select className="field" value={pod?.uid ?? ''} onChange={(event) => choose(event.target.value)} translate="no">
          {first && <option value="">{first.title}</option>}
          {pods.map((run) => (
            <option key={run.uid} value={run.uid}>
              {called(run, pods)}
            </option>
          ))}
        </select>
      </label>
      {pod ? <KeptLog key={pod.uid} {...of} pod={pod} /> : first?.content}
    </>
  );
}

/** What a pod is called among others: a StatefulSet's, or those of a job that is started again, have the names of those before them. How long ago they ended may be the same of all. */
function called({ name, reason, createdAt, endedAt }: Run, among: readonly Run[]): string {
  const text = reason ? name + marks.within(stateName(reason)) : name;
  const at = endedAt ?? createdAt;
  return at === undefined || among.filter((run) => run.name === name).length < 2 ? text : text + marks.comma + formatDate(at);
}

/** The same of a job that has no pods any more; `own`: the end of its own log is kept. */
export function PastLogs({ own, pods, ...of }: Of & { readonly own: boolean; readonly pods: readonly Run[] }): ReactNode {
  return pods.length === 0 ? <KeptLog {...of} /> : <KeptLogs {...of} first={own ? { title: t.kept.ofJob, content: <KeptLog {...of} /> } : undefined} pods={pods} />;
}

/** The end of the job's log, or of that of one of its pods, as it was written: a stranger's text. */
export function KeptLog({ of, namespace, name, uid, pod }: Of & { readonly pod?: Run | undefined }): ReactNode {
  const kc = useKubecast();
  const podUid = pod?.uid;
  const read = useReading(useMemo(() => () => pastLog(kc, of, { namespace, name, uid, pod: podUid }), [kc, of, namespace, name, uid, podUid]), undefined);
  const label = pod ? t.kept.podLog(pod.name) : t.kept.log;
  return (
    <>
      <p className="job-kept">{label}</p>
      {read.data ? (
        <KeptLines text={read.data} label={label} file={`${namespace}-${pod?.name ?? name}.log`} />
      ) : (
        <Missing read={read} denied={log.denied} />
      )}
    </>
  );
}

/** As pastSpec, with all numbers as they are. */
export async function exactSpec(kc: Kubecast, of: Resource<KubeObject>, { namespace, name, uid }: Omit<Of, 'of'>): Promise<KubeObject | undefined> {
  try {
    return (await exactAnswerTo(kc, `/history${pathOf(of, { namespace, name })}?${new URLSearchParams({ uid, view: 'spec' })}`)) as KubeObject;
  } catch (error) {
    if (error instanceof AskedError && error.status === 404) return undefined;
    throw error;
  }
}

/** The object as it was last seen, without its status. */
export function KeptSpec({ of, namespace, name, uid }: Of): ReactNode {
  const kc = useKubecast();
  const read: Read<KubeObject | undefined> = useReading(useMemo(() => () => exactSpec(kc, of, { namespace, name, uid }), [kc, of, namespace, name, uid]), undefined);
  return (
    <>
      <p className="job-kept">{t.kept.spec}</p>
      {read.data ? <Yaml object={read.data} status="live" /> : <Missing read={read} denied={t.yaml.denied} />}
    </>
  );
}

/** `denied` is said before the gateway's own words, if it refuses. */
function Missing({ read, denied }: { read: Read<unknown>; denied: string }): ReactNode {
  if (read.error) {
    return (
      <p className="job-none">
        {denied} <span translate="no">{read.error.message}</span>
      </p>
    );
  }
  return <p className="job-none">{read.at === undefined ? t.loading : t.kept.none}</p>;
}
