// One object of whatever kind: its conditions, events, what it belongs to, and all of it as YAML.

import { defineResource, type KubeObject } from '@kubecast/sdk';
import { useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Events, eventFields } from '../job/Events.tsx';
import { events } from '../job/resources.ts';
import { Yaml } from '../job/Yaml.tsx';
import type { Kind } from '../kinds/discovery.ts';
import { ownerOf } from '../table/owner.ts';
import { linkToKind, type View } from '../view/view.ts';
import { commonFacts, Labels } from './CommonFacts.tsx';
import { Conditions, conditionsOf } from './Conditions.tsx';
import { Facts, ObjectFrame } from './ObjectFrame.tsx';
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
  const said = useWatch(events, { namespace: namespace || 'default', where: `involvedObject.kind=${kind.kind},involvedObject.name=${name}`, fields: eventFields });
  const object = watched.data[0];
  const owner = object && ownerOf(object.metadata);
  const conditions = conditionsOf(object);
  const { tabs } = t;
  return (
    <ObjectFrame
      view={view}
      namespace={namespace}
      name={name}
      back={{ href: linkToKind(kind.id, view), title: kind.plural, foreign: true }}
      mark={<span className="job-namespace" translate="no">{kind.kind}</span>}
      command={`get ${kind.id} -o yaml`}
      watched={watched}
      there={object !== undefined}
      missing={t.notThere}
      facts={
        object && (
          <>
            <Facts
              facts={[
                [t.kind, <span key="kind" translate="no">{`${kind.kind} (${kind.group ? `${kind.group}/` : ''}${kind.version})`}</span>],
                Boolean(owner) && [t.owner, <span key="owner" translate="no">{owner}</span>],
                ...commonFacts(object, view),
              ]}
            />
            <Labels object={object} />
          </>
        )
      }
      tabs={[
        { id: 'yaml', title: tabs.yaml, content: () => <Yaml object={object} status={watched.status} /> },
        ...(conditions.length > 0 ? [{ id: 'conditions', title: tabs.conditions, count: conditions.length, content: () => <Conditions object={object} status={watched.status} /> }] : []),
        { id: 'events', title: tabs.events, count: said.data.length, content: () => <Events all={said.data} kind="" self="" status={said.status} message={said.error?.message} /> },
      ]}
    />
  );
}
