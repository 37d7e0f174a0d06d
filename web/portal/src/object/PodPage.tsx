// One pod: how it and its containers stand, what it writes, and what the cluster says about it.

import { defineResource } from '@kubecast/sdk';
import { useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { statusPath, whereAll } from '../filters/status.ts';
import { Events, eventFields } from '../job/Events.tsx';
import { Log } from '../log/Log.tsx';
import { events, pods } from '../job/resources.ts';
import { Yaml } from '../job/Yaml.tsx';
import { timeOf } from '../jobs/job.ts';
import { t as pages } from '../pages/texts.ts';
import { podRow, whyOfPod, type Pod } from '../pods/pod.ts';
import { unwrittenBy } from '../pods/unwritten.ts';
import { StateMark } from '../state/StateMark.tsx';
import { linkTo, linkToObject, type View } from '../view/view.ts';
import { commonFacts, Labels } from './CommonFacts.tsx';
import { Conditions, conditionsOf } from './Conditions.tsx';
import { Containers, containersOf } from './Containers.tsx';
import { Facts, ObjectFrame } from './ObjectFrame.tsx';
import { formatAmount, memoryLimit, requestsOf } from './requests.ts';
import { t } from './texts.ts';

interface WholePod extends Pod {
  readonly spec?: Pod['spec'] & { readonly priorityClassName?: string };
  readonly status?: Pod['status'] & { readonly podIP?: string; readonly qosClass?: string };
}

/** All of it, and what the gateway derives. */
const whole = ['metadata', 'spec', 'status', statusPath];
const wholePods = defineResource<WholePod>()(pods);

interface PodPageProps {
  readonly view: View;
  readonly namespace: string;
  readonly name: string;
  readonly token: string | undefined;
}

export function PodPage({ view, namespace, name, token }: PodPageProps): ReactNode {
  const watched = useWatch(wholePods, { namespace, name, fields: whole });
  const said = useWatch(events, { namespace, where: whereAll({ 'involvedObject.kind': 'Pod', 'involvedObject.name': name }), fields: eventFields });
  const pod = watched.data[0];
  const row = useMemo(() => pod && podRow(pod), [pod]);
  const requests = useMemo(() => Object.entries(pod ? requestsOf(pod) : {}), [pod]);
  const { tabs } = t;
  return (
    <ObjectFrame
      view={view}
      namespace={namespace}
      name={name}
      table={{ href: linkTo('pods', view), title: pages.titles.pods }}
      mark={row && <StateMark {...row} />}
      standing={row && { state: row.state, cause: row.phase === 'Failed' ? row.state : '' }}
      command="describe pod"
      watched={watched}
      there={pod !== undefined}
      missing={t.notThere}
      facts={
        pod &&
        row && (
          <>
            {row.end && (
              <section className="job-why" data-state={row.phase === 'Waiting' ? 'Retrying' : row.phase} aria-labelledby="pod-why">
                <h2 id="pod-why">{t.why[row.phase] ?? t.whyAgain}</h2>
                <p translate="no">{whyOfPod(row)}</p>
                {row.end.reason === 'OOMKilled' && <p className="job-why-more">{t.memoryLimit(memoryLimit(pod.spec, row.end.container))}</p>}
              </section>
            )}
            <Facts
              facts={[
                row.owner !== '' && [t.owner, <span key="owner" translate="no">{row.owner}</span>],
                row.node !== '' && [
                  t.node,
                  <a key="node" translate="no" href={linkToObject('nodes', '', row.node, view)}>
                    {row.node}
                  </a>,
                ],
                pod.status?.podIP !== undefined && [t.ip, <span key="ip" translate="no">{pod.status.podIP}</span>],
                requests.length > 0 && [
                  t.containers.requests,
                  <span key="requests" className="fact-list" translate="no">
                    {requests.map(([resource, amount]) => (
                      <span key={resource}>{`${resource} ${formatAmount(resource, amount)}`}</span>
                    ))}
                  </span>,
                ],
                pod.status?.qosClass !== undefined && [t.qos, <span key="qos" translate="no">{pod.status.qosClass}</span>],
                pod.spec?.priorityClassName !== undefined && [t.priority, <span key="priority" translate="no">{pod.spec.priorityClassName}</span>],
                [t.restarts, t.count(row.restarts)],
                [t.started, <Age key="started" since={timeOf(pod.status?.startTime)} in={t.ago} />],
                ...commonFacts(pod, view),
              ]}
            />
            {row.message && (
              <p className="job-said" translate="no">
                {row.message}
              </p>
            )}
            <Labels object={pod} />
          </>
        )
      }
      tabs={[
        { id: 'logs', title: tabs.logs, content: () => <Log key={name} of={pods} namespace={namespace} name={name} token={token} unwritten={row ? unwrittenBy([row]) : watched.status === 'live' ? { text: t.noPodNoLog } : undefined} /> },
        { id: 'containers', title: tabs.containers, count: pod && containersOf(pod).length, content: () => <Containers pod={pod} status={watched.status} /> },
        { id: 'conditions', title: tabs.conditions, count: pod && conditionsOf(pod).length, content: () => <Conditions object={pod} status={watched.status} /> },
        { id: 'events', title: tabs.events, count: said.data.length, content: () => <Events all={said.data} kind="" self="" status={said.status} message={said.error?.message} /> },
        { id: 'yaml', title: tabs.yaml, content: () => <Yaml object={pod} status={watched.status} of={pods} /> },
      ]}
    />
  );
}
