// One node: whether it is well, what it has and how much of that its pods request, and these pods.

import { defineResource, isFinal, type KubeObject } from '@kubecast/sdk';
import { useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { whereAll } from '../filters/status.ts';
import { Events, eventFields } from '../job/Events.tsx';
import { Listing } from '../job/Listing.tsx';
import { events, pods } from '../job/resources.ts';
import { Yaml } from '../job/Yaml.tsx';
import { podFields } from '../pods/fields.ts';
import { podRow, type Pod } from '../pods/pod.ts';
import { wordOf } from '../state/said.ts';
import { StateMark } from '../state/StateMark.tsx';
import { linkToKind, linkToObject, type View } from '../view/view.ts';
import { commonFacts, Labels } from './CommonFacts.tsx';
import { Conditions, conditionsOf } from './Conditions.tsx';
import { Facts, ObjectFrame } from './ObjectFrame.tsx';
import { formatAmount, quantity, requestsOf, sum, type Amounts } from './requests.ts';
import { isTrouble } from './trouble.ts';
import { marks } from '../texts/punctuation.ts';
import { t } from './texts.ts';

interface Node extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[] };
  readonly status?: {
    readonly allocatable?: Readonly<Record<string, string>>;
    readonly capacity?: Readonly<Record<string, string>>;
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly nodeInfo?: { readonly kubeletVersion?: string; readonly osImage?: string; readonly architecture?: string };
  };
}

const nodes = defineResource<Node>()({ version: 'v1', plural: 'nodes' });
const onNode = [...podFields, 'spec.containers.resources', 'spec.initContainers.resources', 'spec.initContainers.restartPolicy', 'spec.overhead'];

/** Whether a node takes pods, in kubectl's words but for what presses it, which kubectl does not tell. */
export function nodeState(node: Node): { readonly state: string; readonly detail: string; readonly message: string } {
  const ready = conditionsOf(node).find(({ type }) => type === 'Ready');
  const closed = node.spec?.unschedulable ? ',SchedulingDisabled' : '';
  if (ready?.status !== 'True') return { state: `NotReady${closed}`, detail: ready?.reason ?? '', message: ready?.message ?? '' };
  const pressed = conditionsOf(node).filter(isTrouble);
  return { state: closed ? `Ready${closed}` : pressed.length > 0 ? 'Pressed' : 'Ready', detail: pressed.map(({ type }) => wordOf(type)).join(marks.list), message: pressed[0]?.message ?? '' };
}

export function NodePage({ view, name }: { view: View; name: string }): ReactNode {
  const watched = useWatch(nodes, { name });
  const here = useWatch(pods, { where: whereAll({ 'spec.nodeName': name }), fields: onNode });
  // Where those of what is in no namespace are.
  const said = useWatch(events, { namespace: 'default', where: whereAll({ 'involvedObject.kind': 'Node', 'involvedObject.name': name }), fields: eventFields });
  const node = watched.data[0];
  const rows = useMemo(() => here.data.map(podRow).sort((a, b) => b.created - a.created || a.name.localeCompare(b.name)), [here.data]);
  const requested = useMemo(() => here.data.map(requestsOf).reduce(sum, {}), [here.data]);
  const roles = Object.keys(node?.metadata.labels ?? {}).flatMap((label) => /^node-role\.kubernetes\.io\/(.+)$/.exec(label)?.[1] ?? []);
  const ready = node && conditionsOf(node).find(({ type }) => type === 'Ready');
  const { nodeInfo, addresses = [] } = node?.status ?? {};
  const { tabs } = t;
  return (
    <ObjectFrame
      view={view}
      namespace=""
      name={name}
      table={{ href: linkToKind('nodes', view), title: 'nodes', foreign: true }}
      mark={node && <StateMark {...nodeState(node)} />}
      standing={node && { state: nodeState(node).state, cause: '' }}
      command="describe node"
      watched={watched}
      there={node !== undefined}
      missing={t.notThere}
      facts={
        node && (
          <>
            {ready?.status !== 'True' && (
              <section className="job-why" data-state="Failed" aria-labelledby="node-why">
                <h2 id="node-why">{t.whyNotReady}</h2>
                <p translate="no">{[ready?.reason, ready?.message].filter(Boolean).join(': ')}</p>
                <p className="job-why-more">
                  {t.conditions.since}: <Age since={ready?.since} in={t.ago} />
                </p>
              </section>
            )}
            {node.spec?.unschedulable && <p className="job-said">{t.unschedulable}</p>}
            <h2>{t.capacity}</h2>
            <Capacity node={node} requested={requested} pods={here.data} narrowed={here.namespaces !== undefined || isFinal(here)} />
            <Facts
              facts={[
                roles.length > 0 && [t.roles, <span key="roles" translate="no">{roles.join(', ')}</span>],
                [t.ip, addresses.length === 0 ? '–' : <span key="ip" className="fact-list" translate="no">{addresses.map(({ address }) => address).filter((one, n, all) => all.indexOf(one) === n).map((one) => <span key={one}>{one}</span>)}</span>],
                [t.version, <span key="version" translate="no">{nodeInfo?.kubeletVersion}</span>],
                Boolean(nodeInfo?.osImage) && [t.system, <span key="system" translate="no">{[nodeInfo?.osImage, nodeInfo?.architecture].filter(Boolean).join(' · ')}</span>],
                (node.spec?.taints?.length ?? 0) > 0 && [
                  t.taints,
                  <span key="taints" className="fact-list" translate="no">
                    {node.spec?.taints?.map(({ key, value, effect }) => <span key={key + effect}>{`${key}${value ? `=${value}` : ''}:${effect}`}</span>)}
                  </span>,
                ],
                ...commonFacts(node, view),
              ]}
            />
            <Labels object={node} />
          </>
        )
      }
      tabs={[
        {
          id: 'pods',
          title: tabs.pods,
          count: rows.length,
          content: () => (
            <Listing status={here.status} message={here.error?.message} denied={t.podsDenied} none={t.noPods} headers={[t.pods.name, t.pods.namespace, t.pods.state, t.pods.restarts, t.pods.age]}>
              {rows.map((row) => (
                <tr key={row.uid}>
                  <td className="cell-name" translate="no">
                    <a className="row-link" href={linkToObject('pods', row.namespace, row.name, view)}>
                      {row.name}
                    </a>
                  </td>
                  <td translate="no">{row.namespace}</td>
                  <td>
                    <StateMark {...row} />
                  </td>
                  <td className={row.restarts === 0 ? 'none' : 'cell-number'}>{t.count(row.restarts)}</td>
                  <td>
                    <Age since={row.created} />
                  </td>
                </tr>
              ))}
            </Listing>
          ),
        },
        { id: 'conditions', title: tabs.conditions, count: node && conditionsOf(node).length, content: () => <Conditions object={node} status={watched.status} /> },
        { id: 'events', title: tabs.events, count: said.data.length, content: () => <Events all={said.data} kind="" self="" status={said.status} message={said.error?.message} /> },
        { id: 'yaml', title: tabs.yaml, content: () => <Yaml object={node} status={watched.status} of={nodes} /> },
      ]}
    />
  );
}

interface CapacityProps {
  readonly node: Node;
  readonly requested: Amounts;
  readonly pods: readonly Pod[];
  readonly narrowed: boolean;
}

/** How much of what the node has is spoken for; what nobody can request more than none of is left out. */
function Capacity({ node, requested, pods: here, narrowed }: CapacityProps): ReactNode {
  const running = here.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed').length;
  const amounts: Amounts = { ...requested, pods: running };
  const all = Object.entries(node.status?.allocatable ?? node.status?.capacity ?? {}).filter(([, text]) => quantity(text) > 0);
  return (
    <>
      <ul className="capacity">
        {all.map(([name, text]) => {
          const capacity = quantity(text);
          const used = amounts[name] ?? 0;
          const part = Math.min(1, used / capacity);
          return (
            <li key={name}>
              <p>
                <span translate="no">{name}</span>
                <span>{t.capacityOf(formatAmount(name, used), formatAmount(name, capacity))}</span>
              </p>
              <svg className="capacity-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" data-full={part > 0.95 || undefined}>
                <rect className="track" width="100" height="6" />
                <rect className="used" width={100 * part} height="6" />
              </svg>
            </li>
          );
        })}
      </ul>
      {narrowed && <p className="none">{t.capacitySeen}</p>}
    </>
  );
}
