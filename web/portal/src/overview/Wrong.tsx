// What is wrong at this moment: nodes, pods, why jobs failed, what the cluster warns of; who has the GPUs, and which queues are waited in. Each leads to the table of it.

import { defineResource, isFinal, type KubeObject, pastEnds, type Queue } from '@kubecast/sdk';
import { useCount, useKubecast, useQueues, useWatch } from '@kubecast/sdk/react';
import { useCallback, useMemo, type ReactNode } from 'react';
import { statusPath } from '../filters/status.ts';
import { events, jobs, pods } from '../job/resources.ts';
import { isGPU } from '../object/requests.ts';
import { isTrouble } from '../object/trouble.ts';
import { useHasQueues } from '../pages/shown.ts';
import { useReading } from '../polling/polling.ts';
import { numbersOf } from '../queues/Quota.tsx';
import { usesOf } from '../queues/quota.ts';
import { causeName, isCauseNamed } from '../state/causes.ts';
import { wordOf } from '../state/said.ts';
import { StateIcon } from '../state/StateMark.tsx';
import { isNamed, stateName } from '../state/texts.ts';
import { toneOf, urgency } from '../state/tone.ts';
import { formatNumber } from '../texts/format.ts';
import { formatView, linkTo, linkToObject, linkToQueue, parseView, viewAt, type View } from '../view/view.ts';
import { Gpus } from './Gpus.tsx';
import { t } from './texts.ts';

export interface OverviewNode extends KubeObject {
  readonly $status?: string;
  readonly status?: { readonly allocatable?: Readonly<Record<string, string>>; readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const nodes = defineResource<OverviewNode>()({ version: 'v1', plural: 'nodes' });
const nodeFields = [statusPath, 'status.allocatable', 'status.conditions.type', 'status.conditions.status'];
/** So many lines are in each part, those that matter most. */
const most = 6;

export function Wrong({ view, since, signal }: { readonly view: View; readonly since: string; readonly signal: unknown }): ReactNode {
  const { namespace } = view;
  const hasQueues = useHasQueues();
  const found = useWatch(nodes, { fields: nodeFields, deltas: true });
  return (
    <section className="wrong" aria-label={t.wrong}>
      {!isFinal(found) && <Nodes nodes={found.data} loading={found.status === 'loading'} view={view} />}
      <Pods namespace={namespace} view={view} />
      <Causes view={view} since={since} signal={signal} />
      <Warnings view={view} />
      <Gpus nodes={found.data} view={view} />
      {hasQueues && <Waiting view={view} />}
    </section>
  );
}

interface PartProps {
  readonly title: string;
  readonly loading?: boolean;
  /** Said if there are no lines. */
  readonly none: string;
  readonly children: readonly ReactNode[];
}

export function Part({ title, loading = false, none, children }: PartProps): ReactNode {
  return (
    <section className="wrong-part" aria-label={title}>
      <h2>{title}</h2>
      {children.length > 0 ? <ul>{children}</ul> : <p className="none">{loading ? t.loading : none}</p>}
    </section>
  );
}

interface LineProps {
  /** A state whose sign stands before it. */
  readonly state?: string;
  readonly href: string;
  readonly name: string;
  /** The name is in the page's language. */
  readonly own?: boolean;
  readonly detail?: ReactNode;
  readonly count: ReactNode;
}

export function Line({ state, href, name, own, detail, count }: LineProps): ReactNode {
  return (
    <li>
      {state !== undefined && <StateIcon state={state} />}
      <a href={href} translate={own ? undefined : 'no'}>
        {name}
      </a>
      {detail}
      <span className="wrong-count">{count}</span>
    </li>
  );
}

const lineOf = (state: string, count: number, href: string, detail?: ReactNode): ReactNode => <Line key={state} state={state} name={stateName(state)} own={isNamed(state)} href={href} detail={detail} count={formatNumber(count)} />;

/** As many names as there is room for: who looks at a wall does not click. */
const namesOf = (names: readonly string[]): ReactNode => (
  <span className="wrong-detail" translate="no">
    {names.slice(0, most).join(', ')}
  </span>
);

/** What is broken of all that was counted: what needs somebody first, then what is more. */
export function brokenOf(counts: readonly { readonly value: string; readonly count: number }[]): readonly { readonly value: string; readonly count: number }[] {
  const broken = counts.filter(({ value, count }) => count > 0 && value !== '' && ['failed', 'warning'].includes(toneOf(value)));
  return broken.sort((a, b) => urgency(a.value) - urgency(b.value) || b.count - a.count);
}

function Nodes({ nodes: all, loading, view }: { readonly nodes: readonly OverviewNode[]; readonly loading: boolean; readonly view: View }): ReactNode {
  const states = useMemo(() => {
    const named = new Map<string, string[]>();
    for (const { $status = '', metadata } of all) if ($status !== 'Ready') named.set($status, [...(named.get($status) ?? []), metadata.name]);
    return [...named].sort(([a], [b]) => urgency(a) - urgency(b));
  }, [all]);
  const pressed = useMemo(() => all.flatMap(({ metadata, status }) => (status?.conditions ?? []).filter(isTrouble).map(({ type }) => ({ type, name: metadata.name }))), [all]);
  return (
    <Part title={t.nodes} loading={loading} none={t.nodesWell(all.length)}>
      {[
        ...states.map(([state, names]) => lineOf(state, names.length, formatView({ ...viewAt('#kinds/nodes', view), state }), namesOf(names))),
        ...pressed.slice(0, most).map(({ type, name }) => <Line key={`${type} ${name}`} state="Pressed" name={name} href={linkToObject('nodes', '', name, view)} count={<span translate="no">{wordOf(type)}</span>} />),
        ...(pressed.length > most ? [<Line key="more" name={t.more(pressed.length - most)} own href={formatView(viewAt('#kinds/nodes', view))} count="" />] : []),
      ]}
    </Part>
  );
}

function Pods({ namespace, view }: { readonly namespace: string; readonly view: View }): ReactNode {
  const { data, status } = useCount(pods, [statusPath], { namespace, limit: 100, conflate: 1_000 });
  const broken = useMemo(() => brokenOf(data), [data]);
  if (isFinal({ status })) return null;
  const href = (state: string): string => formatView({ ...parseView(linkTo('pods', view)), search: '', state });
  return (
    <Part title={t.podsBroken} loading={status === 'loading'} none={t.podsWell}>
      {broken.slice(0, most).map(({ value, count }) => lineOf(value, count, href(value)))}
    </Part>
  );
}

function Causes({ view, since, signal }: { readonly view: View; readonly since: string; readonly signal: unknown }): ReactNode {
  const kc = useKubecast();
  const { namespace } = view;
  const read = useCallback(() => pastEnds(kc, jobs, { namespace, by: 'cause', since }), [kc, namespace, since]);
  const { data, error } = useReading(read, signal, 15_000);
  if (error && !data) return null; // the rest of the page says what is wrong with the history
  const causes = (data ?? []).filter(({ failed }) => failed > 0).sort((a, b) => b.failed - a.failed);
  return (
    <Part title={t.causes} loading={!data} none={t.noFailures}>
      {causes.slice(0, most).map(({ key, failed: count }) => (
        <Line key={key} name={causeName(key) || t.unexplained} own={key === '' || isCauseNamed(key)} href={formatView({ ...viewAt('#history', view), namespace, state: 'Failed', since, cause: key })} count={formatNumber(count)} />
      ))}
    </Part>
  );
}

function Warnings({ view }: { readonly view: View }): ReactNode {
  const { namespace } = view;
  const { data, status } = useCount(events, ['reason'], { namespace, where: 'type=Warning', limit: most, conflate: 1_000 });
  if (isFinal({ status })) return null;
  return (
    <Part title={t.warnings} loading={status === 'loading'} none={t.noWarnings}>
      {data.map(({ value, count }) => (
        <Line key={value} name={wordOf(value)} href={formatView({ ...viewAt('#kinds/events', view), namespace, state: value })} count={formatNumber(count)} />
      ))}
    </Part>
  );
}

/** Queues, those in which most wait first: a quota that is used up is worth seeing before somebody waits for it. */
export function queuesOf(queues: readonly Queue[], namespace: string): readonly Queue[] {
  return queues.filter((queue) => namespace === '' || queue.namespace === namespace).sort((a, b) => b.waiting - a.waiting);
}

function Waiting({ view }: { readonly view: View }): ReactNode {
  const { namespace } = view;
  const { data, status } = useQueues();
  const queues = useMemo(() => queuesOf(data, namespace), [data, namespace]);
  if (isFinal({ status })) return null;
  return (
    <Part title={t.queues} loading={status === 'loading'} none={t.noneWaits}>
      {queues.slice(0, most).map((queue) => {
        const [use] = usesOf(queue);
        const said = use && `${numbersOf(use)} ${isGPU(use.resource) ? t.gpus : use.resource}`;
        return (
          <Line
            key={`${queue.namespace}/${queue.name}`}
            name={[queue.namespace, queue.name].filter(Boolean).join('/')}
            href={linkToQueue(queue.namespace, queue.name, view)}
            detail={said && <span className="wrong-detail" translate="no">{said}</span>}
            count={queue.waiting > 0 ? t.waitIn(queue.waiting) : t.noneWaitsHere}
          />
        );
      })}
    </Part>
  );
}
