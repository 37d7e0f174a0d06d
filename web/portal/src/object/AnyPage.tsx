// One object of whatever kind: its conditions, events, what it belongs to, and all of it as YAML.

import { defineResource, transitions, type KubeObject, type PastJob, type Resource } from '@kubecast/sdk';
import { useFollow, useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { whereAll } from '../filters/status.ts';
import { Events, eventFields } from '../job/Events.tsx';
import { KeptSpec, lostPods, PastLogs } from '../job/Kept.tsx';
import { latestLife, withCause } from '../job/life.ts';
import { Parts, pastFacts, PastMark, Why } from '../job/PastFacts.tsx';
import { PodsEver } from '../job/Pods.tsx';
import { events } from '../job/resources.ts';
import { t as jobTexts } from '../job/texts.ts';
import { Timeline } from '../job/Timeline.tsx';
import { Progress } from '../jobs/Progress.tsx';
import { Yaml } from '../job/Yaml.tsx';
import type { Kind } from '../kinds/discovery.ts';
import { ownerOf } from '../table/owner.ts';
import { linkToKind, type View } from '../view/view.ts';
import { commonFacts, Labels } from './CommonFacts.tsx';
import { Conditions, conditionsOf } from './Conditions.tsx';
import { Facts, ObjectFrame } from './ObjectFrame.tsx';
import { useRecorded } from './recorded.ts';
import { t } from './texts.ts';

interface AnyPageProps {
  readonly view: View;
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

export function AnyPage({ view, kind, namespace, name }: AnyPageProps): ReactNode {
  const resource = useMemo(() => defineResource<KubeObject>()(kind), [kind]);
  const watched = useWatch(resource, { namespace, name });
  const object = watched.data[0];
  const owner = object && ownerOf(object.metadata);
  const conditions = conditionsOf(object);
  // What is recorded of it, if it is a job of some kind; each of its versions may change that.
  const past = useRecorded(kind, namespace, name, object?.metadata.uid, object?.metadata.resourceVersion ?? watched.status);
  // A name is used again. Of what says by itself that it is not there, whatever had the name last is spoken of.
  const uid = object?.metadata.uid ?? past?.uid;
  const said = useWatch(
    events,
    uid === undefined && watched.status === 'loading'
      ? 'skip'
      : { namespace: namespace || 'default', where: whereAll(uid === undefined ? { 'involvedObject.kind': kind.kind, 'involvedObject.name': name } : { 'involvedObject.uid': uid }), fields: eventFields },
  );
  const { tabs } = t;
  const of = past && { of: resource, namespace, name, uid: past.uid };
  return (
    <ObjectFrame
      view={view}
      namespace={namespace}
      name={name}
      table={{ href: linkToKind(kind.id, view), title: kind.plural, foreign: true }}
      mark={
        <>
          <span className="job-namespace" translate="no">{kind.kind}</span>
          {past && <PastMark past={past} />}
        </>
      }
      command={`get ${kind.id} -o yaml`}
      watched={watched}
      there={object !== undefined}
      known={past !== undefined}
      missing={past ? jobTexts.gone : t.notThere}
      facts={
        <>
          {past && <Why past={past} view={view} there={() => false} />}
          {(object ?? past) && (
            <Facts
              facts={[
                [t.kind, <span key="kind" translate="no">{`${kind.kind} (${kind.group ? `${kind.group}/` : ''}${kind.version})`}</span>],
                past?.progress && [jobTexts.progress, <Progress key="progress" succeeded={past.progress.done} completions={past.progress.of} />],
                Boolean(past?.owner || owner) && [t.owner, <span key="owner" translate="no">{past?.owner || owner}</span>],
                ...(object ? commonFacts(object, view) : [[t.created, <Age key="created" since={past?.createdAt} in={t.ago} />] as const]),
                ...pastFacts(past, view),
              ]}
            />
          )}
          <Parts past={past} signal={past?.since} view={view} />
          {past && <Happened of={resource} past={past} />}
          {object && <Labels object={object} />}
        </>
      }
      tabs={[
        { id: 'yaml', title: tabs.yaml, content: () => (of && past.spec && !object && watched.status === 'live' ? <KeptSpec key={of.uid} {...of} /> : <Yaml object={object} status={watched.status} of={resource} />) },
        ...(of && (past.log || lostPods(past).length > 0) ? [{ id: 'logs', title: tabs.logs, content: () => <PastLogs key={of.uid} {...of} own={past.log === true} pods={lostPods(past)} /> }] : []),
        ...(past && (past.podCount ?? 0) > 0 ? [{ id: 'pods', title: tabs.pods, count: past.podCount ?? 0, content: () => <PodsEver key={past.uid} of={resource} past={past} rows={[]} status="live" message={undefined} view={view} /> }] : []),
        ...(conditions.length > 0 ? [{ id: 'conditions', title: tabs.conditions, count: conditions.length, content: () => <Conditions object={object} status={watched.status} /> }] : []),
        { id: 'events', title: tabs.events, count: said.data.length, content: () => <Events all={said.data} kind="" self="" status={said.status === 'idle' ? 'loading' : said.status} message={said.error?.message} /> },
      ]}
    />
  );
}

/** The states through which it went. */
function Happened({ of, past }: { of: Resource<KubeObject>; past: PastJob }): ReactNode {
  const told = useFollow(transitions(of, { namespace: past.namespace, name: past.name, limit: 500 }));
  const life = useMemo(() => withCause(latestLife(told.data, past.uid), past), [told.data, past]);
  return (
    <>
      <h2>{jobTexts.happened}</h2>
      <Timeline life={life} status={told.status} message={told.error?.message} />
    </>
  );
}
