// What is kept of a job that has ended: the end of its log, once its pods are gone, and what it was told to do, once it is gone itself.

import { pastJobs, pastLog, pastSpec, type KubeObject, type PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { useReading, type Read } from '../reading/reading.ts';
import { jobs } from './resources.ts';
import { Yaml } from './Yaml.tsx';
import { t } from './texts.ts';

interface Of {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The job of a uid as the history has it; it is read again with each other `state`, which says that it may have changed. Without a uid nothing is read. */
export function usePastJob(namespace: string, name: string, uid: string | undefined, state: string | undefined): PastJob | undefined {
  const kc = useKubecast();
  const read = useMemo(
    () => (): Promise<PastJob | undefined> =>
      uid === undefined ? Promise.resolve(undefined) : pastJobs(kc, jobs, { namespace, name, limit: 20 }).then(({ items }) => items.find((one) => one.uid === uid)),
    [kc, namespace, name, uid],
  );
  return useReading(read, state).data;
}

/** The end of the log, as it was written: a stranger's text. */
export function KeptLog({ namespace, name, uid }: Of): ReactNode {
  const kc = useKubecast();
  const read = useReading(useMemo(() => () => pastLog(kc, jobs, { namespace, name, uid }), [kc, namespace, name, uid]), undefined);
  return (
    <>
      <p className="job-kept">{t.kept.log}</p>
      {read.data ? (
        <pre className="job-scroller yaml" translate="no" tabIndex={0} aria-label={t.kept.log}>
          <div>{read.data}</div>
        </pre>
      ) : (
        <Missing read={read} />
      )}
    </>
  );
}

/** The object as it was last seen, without its status. */
export function KeptSpec({ namespace, name, uid }: Of): ReactNode {
  const kc = useKubecast();
  const read: Read<KubeObject | undefined> = useReading(useMemo(() => () => pastSpec(kc, jobs, { namespace, name, uid }), [kc, namespace, name, uid]), undefined);
  return (
    <>
      <p className="job-kept">{t.kept.spec}</p>
      {read.data ? <Yaml object={read.data} status="live" /> : <Missing read={read} />}
    </>
  );
}

function Missing({ read }: { read: Read<unknown> }): ReactNode {
  if (read.error) {
    return (
      <p className="job-none">
        {t.log.denied} <span translate="no">{read.error.message}</span>
      </p>
    );
  }
  return <p className="job-none">{read.at === undefined ? t.loading : t.kept.none}</p>;
}
