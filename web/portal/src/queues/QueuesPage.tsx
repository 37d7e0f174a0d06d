// The queues that the user may see: how much of each is used, and how many wait.

import { isFinal, type Kubecast, type Queue } from '@kubecast/sdk';
import { useKubecast, useQueues } from '@kubecast/sdk/react';
import { useCallback, useMemo, type ReactNode } from 'react';
import { Dated, useAway } from '../connection/Dated.tsx';
import { isAway } from '../connection/describe.ts';
import { NamespaceFilter } from '../filters/NamespaceFilter.tsx';
import { groupsOf } from '../kinds/discovery.ts';
import { PlainTable, type PlainColumn } from '../listing/PlainTable.tsx';
import { useReading } from '../polling/polling.ts';
import { formatNumber } from '../texts/format.ts';
import { linkToQueue, type View } from '../view/view.ts';
import { numbersOf, QuotaBar } from './Quota.tsx';
import { usesOf } from './quota.ts';
import { t } from './texts.ts';
import '../job/job.css';
import './queues.css';

/** So many resources are told of each in the list. */
const most = 3;

/** Of what has queues. */
const queueGroups = new Set(['kueue.x-k8s.io', 'scheduling.volcano.sh']);
const hasQueueKinds = async (kc: Kubecast): Promise<boolean> => (await groupsOf(kc)).some((group) => queueGroups.has(group));

const columns: readonly PlainColumn<Queue>[] = [
  {
    id: 'queue',
    header: t.columns.queue,
    cell: ({ name, stopped }) => (
      <>
        <span translate="no">{name}</span>
        {stopped && <span className="state-detail"> {t.stopped}</span>}
      </>
    ),
  },
  { id: 'namespace', header: t.columns.namespace, cell: ({ namespace }) => (namespace ? <span translate="no">{namespace}</span> : <span className="none">{t.whole}</span>) },
  { id: 'part', header: t.columns.part, cell: ({ clusterQueue, cohort }) => <span translate="no">{[clusterQueue, cohort].filter(Boolean).join(' · ') || '–'}</span> },
  { id: 'waiting', header: t.columns.waiting, numeric: true, cell: ({ waiting }) => formatNumber(waiting) },
  { id: 'running', header: t.columns.running, numeric: true, cell: ({ running }) => formatNumber(running) },
  { id: 'use', header: t.columns.use, cell: (queue) => <InUse queue={queue} /> },
];

function InUse({ queue }: { readonly queue: Queue }): ReactNode {
  return (
    <ul className="queue-uses">
      {usesOf(queue)
        .slice(0, most)
        .map((use) => (
          <li key={`${use.flavor}/${use.resource}`}>
            <span translate="no">{[use.flavor, use.resource].filter(Boolean).join(' · ')}</span>
            <QuotaBar use={use} />
            <span className="quota-numbers">{numbersOf(use)}</span>
          </li>
        ))}
    </ul>
  );
}

/** Why there are none: what a cluster without queues does not have nobody has to be permitted. */
function NoQueues({ namespace, any }: { readonly namespace: string; /** There are queues elsewhere. */ readonly any: boolean }): ReactNode {
  const kc = useKubecast();
  const read = useCallback(() => (any ? Promise.resolve(true) : hasQueueKinds(kc)), [kc, any]);
  const { data: has, error } = useReading(read, any);
  if (has === undefined && !error) return t.loading;
  return has === false ? t.notInstalled : namespace ? t.noneHere : t.none;
}

export function QueuesPage({ view }: { readonly view: View }): ReactNode {
  const { data, status, reason, asOf, error, retry } = useQueues();
  const { namespace } = view;
  const rows = useMemo(() => data.filter((queue) => namespace === '' || queue.namespace === '' || queue.namespace === namespace), [data, namespace]);
  const old = useAway() === undefined && isAway({ status, reason });
  return (
    <>
      <div className="toolbar">
        <h1 id="queues-title" className="toolbar-title">
          {t.title}
        </h1>
        <NamespaceFilter selected={namespace} />
      </div>
      <Dated asOf={asOf} why={old ? (error?.message ?? '') : undefined}>
        <PlainTable labelledBy="queues-title" columns={columns} rows={rows} keyOf={({ namespace: where, name }) => `${where}/${name}`} href={({ namespace: where, name }) => linkToQueue(where, name, view)}>
          {rows.length === 0 && (
            <p className="job-none" role="status">
              {status === 'loading' || isFinal({ status }) ? (
                error ? (
                  <>
                    <span translate="no">{error.message}</span>{' '}
                    <button type="button" className="button button-small" onClick={retry}>
                      {t.again}
                    </button>
                  </>
                ) : (
                  t.loading
                )
              ) : (
                <NoQueues namespace={namespace} any={data.length > 0} />
              )}
            </p>
          )}
        </PlainTable>
      </Dated>
    </>
  );
}
