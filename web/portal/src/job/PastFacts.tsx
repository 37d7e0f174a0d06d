// What the history knows of a job beside its states: why it is in its state, what it used, what it is a part of, and its parts.

import { pastJobs, pastSpec, type KubeObject, type Kubecast, type PastJob, type Resource } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { useKinds, type Kind } from '../kinds/discovery.ts';
import { outcomeOf } from '../history/outcome.ts';
import { memoryLimit } from '../object/requests.ts';
import { t as objects } from '../object/texts.ts';
import { useReading } from '../polling/polling.ts';
import { InItsWords } from '../state/InItsWords.tsx';
import { StateIcon, StateMark } from '../state/StateMark.tsx';
import { stateName } from '../state/texts.ts';
import { saidInFull, whyNow } from '../state/why.ts';
import { formatHours, formatNumber } from '../texts/format.ts';
import { formatView, linkToObject, linkToRun, viewAt, type View } from '../view/view.ts';
import { ends } from './life.ts';
import { jobs } from './resources.ts';
import { t } from './texts.ts';

/** How a job stands or ended that is not there to say so itself. */
export function PastMark({ past }: { past: PastJob }): ReactNode {
  const state = outcomeOf(past);
  return <StateMark state={state} detail={past.state === 'Deleted' && state !== 'Deleted' ? t.removedToo : ''} message="" />;
}

/** Why it is in its state, in one sentence, and which pod says so. */
export function Why({ past, limit, tooLarge, view, there }: { past: PastJob; /** What is said of how much memory it might have. */ limit?: ReactNode; /** What is said of what no node has. */ tooLarge?: ReactNode; view: View; /** Whether a pod is there, by its name. */ there: (pod: string) => boolean }): ReactNode {
  const state = outcomeOf(past);
  const why = whyNow(past);
  if (!why) return null;
  const { pod, reason } = past.cause ?? {};
  const full = saidInFull(past);
  return (
    <section className="job-why" data-state={state} aria-labelledby="job-why">
      <h2 id="job-why">{t.why[state] ?? t.whySo}</h2>
      <p translate="no">{why}</p>
      {full && <InItsWords text={full} />}
      {tooLarge}
      {reason === 'OOMKilled' && limit}
      {pod && (
        <p className="job-why-more">
          {t.whyPod}{' '}
          {there(pod) ? (
            <a href={linkToObject('pods', past.namespace, pod, view)} translate="no">
              {pod}
            </a>
          ) : (
            <span translate="no">{pod}</span>
          )}
        </p>
      )}
      {reason && (
        <p className="job-why-more">
          <a href={formatView({ ...viewAt('#history', view), namespace: past.namespace, cause: reason })}>{t.whyAlike}</a>
        </p>
      )}
    </section>
  );
}

/** How much memory the container might have that ran out of it, as the job is written, or was. Its object is not there any more: that is what is kept. */
export function MemoryLimit({ past: { namespace, name, uid, spec, cause }, job }: { past: PastJob; job: KubeObject | undefined }): ReactNode {
  const kc = useKubecast();
  const there = job !== undefined;
  const read = useMemo(() => () => (there || !spec ? Promise.resolve(undefined) : pastSpec(kc, jobs, { namespace, name, uid })), [kc, there, spec, namespace, name, uid]);
  const { data } = useReading(read, undefined);
  const { spec: written } = ((job ?? data) as { readonly spec?: { readonly template?: { readonly spec?: object } } } | undefined) ?? {};
  if (!written?.template?.spec || !cause?.container) return null;
  return <p className="job-why-more">{objects.memoryLimit(memoryLimit(written.template.spec, cause.container))}</p>;
}

/** The facts that only the history has. */
export function pastFacts(past: PastJob | undefined, view: View): (readonly [string, ReactNode] | false)[] {
  if (!past) return [];
  const { namespace, parent, attempt, startedAt, hours, podFailures, podCount, preemptions, deletedAt, requests = {} } = past;
  // Of what waits yet, and of what waited in vain, there is nothing to count. Pods may have held resources without the job's having run.
  const hasRun = startedAt !== undefined || attempt > 1 || (!!hours && hours.cpu + hours.memory + hours.gpu > 0);
  const requested = Object.entries(requests).sort(([a], [b]) => a.localeCompare(b));
  return [
    parent !== undefined && [
      t.partOf,
      <a key="parent" href={linkToObject(parent.resource, namespace, parent.name, view)} translate="no">
        {parent.name}
      </a>,
    ],
    hasRun && [t.attempts, formatNumber(attempt)],
    typeof podFailures === 'number' && typeof podCount === 'number' && podCount > 0 && [t.podsFailed, <span key="failed" className={podFailures > 0 ? 'job-failed' : undefined}>{t.ofPods(podFailures, podCount)}</span>],
    typeof preemptions === 'number' && preemptions > 0 && [t.preemptions, formatNumber(preemptions)],
    requested.length > 0 && [
      t.requested,
      <span key="requested" className="fact-list" translate="no">
        {requested.map(([resource, amount]) => (
          <span key={resource}>
            {resource} {amount}
          </span>
        ))}
      </span>,
    ],
    (hasRun || !hours) && [t.used, <Used key="used" past={past} />],
    deletedAt !== undefined && [t.removed, <Age key="removed" since={deletedAt} in={t.ago} />],
  ];
}

/** Hours by what is requested. GPUs are named where there were any. */
function Used({ past: { hours, parent } }: { past: PastJob }): ReactNode {
  if (!hours) return <span className="none">– ({parent ? t.usedByParent : t.usedUnknown})</span>;
  return (
    <span className="fact-list">
      <span>{t.hours.cpu(formatHours(hours.cpu))}</span>
      <span>{t.hours.memory(formatHours(hours.memory))}</span>
      {hours.gpu > 0 && <span>{t.hours.gpu(formatHours(hours.gpu))}</span>}
    </span>
  );
}

interface Part {
  readonly kind: string;
  readonly job: PastJob;
}

/** Kinds whose objects are made by other recorded ones, beside Jobs. */
const kindsOfParts = new Set([
  'jobsets.jobset.x-k8s.io', 'taskruns.tekton.dev', 'customruns.tekton.dev', 'rayclusters.ray.io', 'rayjobs.ray.io', 'pytorchjobs.kubeflow.org', 'mpijobs.kubeflow.org',
  'jobs.batch.volcano.sh', 'sparkapplications.sparkoperator.k8s.io', 'trainjobs.trainer.kubeflow.org', 'workloads.kueue.x-k8s.io', 'leaderworkersets.leaderworkerset.x-k8s.io',
]);
/** So many parts of each kind are told. */
const most = 100;

/** Until all that may be seen are found: Jobs first, which most parts are. What is not recorded, or may not be seen, has none. */
async function partsOf(kc: Kubecast, kinds: readonly Kind[], { namespace, uid, children }: PastJob): Promise<readonly Part[]> {
  const parts: Part[] = [];
  const asked: (readonly [string, Resource<KubeObject>])[] = [['jobs.batch', jobs], ...kinds.filter(({ id }) => kindsOfParts.has(id)).map((kind) => [kind.id, kind] as const)];
  for (const [kind, resource] of asked) {
    if (parts.length >= Math.min(children, most)) break;
    const { items } = await pastJobs(kc, resource, { namespace, parent: uid, limit: most }).catch(() => ({ items: [] }));
    parts.push(...items.map((job) => ({ kind, job })));
  }
  return parts.sort((a, b) => a.job.createdAt - b.job.createdAt || a.job.name.localeCompare(b.job.name, undefined, { numeric: true }));
}

const idle = (parts: readonly Part[]): number | undefined => (parts.every(({ job }) => ends.has(job.state)) ? undefined : 5_000);

/** The jobs that are parts of it, each with its state; nothing if there are none. */
export function Parts({ past, signal, view }: { past: PastJob | undefined; signal: unknown; view: View }): ReactNode {
  if (!past || past.children === 0) return null;
  return (
    <>
      <h2>{t.parts}</h2>
      <PartList past={past} signal={signal} view={view} />
    </>
  );
}

function PartList({ past, signal, view }: { past: PastJob; signal: unknown; view: View }): ReactNode {
  const kc = useKubecast();
  const { data: kinds } = useKinds();
  const { uid, namespace, children } = past;
  // eslint-disable-next-line react-hooks/exhaustive-deps -- of a job nothing else counts
  const read = useMemo(() => () => partsOf(kc, kinds ?? [], past), [kc, kinds, uid, namespace, children]);
  const { data: parts } = useReading(read, signal, 1_000, idle);
  if (!parts) return <p className="none">{t.loading}</p>;
  return (
    <>
      <ul className="job-parts">
        {parts.map(({ kind, job }) => {
          const state = outcomeOf(job);
          const why = whyNow(job);
          return (
            <li key={job.uid} data-name={job.name} data-state={state}>
              <StateIcon state={state} />
              <div>
                <a href={kind === 'jobs.batch' ? linkToRun(job, view) : linkToObject(kind, job.namespace, job.name, view)} translate="no">
                  {job.name}
                </a>{' '}
                <span className="state-name">{stateName(state)}</span>
                {why && <div className="state-detail" translate="no">{why}</div>}
              </div>
            </li>
          );
        })}
      </ul>
      {children > parts.length && <p className="none">{t.partsMore(children - parts.length)}</p>}
    </>
  );
}
