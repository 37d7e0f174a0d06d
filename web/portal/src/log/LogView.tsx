// What a job's pods write.

import { useState, type ReactNode } from 'react';
import { jobs, pods } from '../job/resources.ts';
import type { PodRow } from '../pods/pod.ts';
import { unwrittenBy, type Unwritten } from '../pods/unwritten.ts';
import { stateName } from '../state/texts.ts';
import { setView, useView } from '../view/view.ts';
import { parseAddress } from './address.ts';
import { Log } from './Log.tsx';
import { t } from './texts.ts';

interface LogViewProps {
  readonly namespace: string;
  readonly name: string;
  /** The job's, which are known by now as far as they may be seen. */
  readonly pods: readonly PodRow[];
  /** Of one pod at a time however few there are: what has the name is not what they belong to. */
  readonly byPod?: boolean;
  /** Why nothing is written while there are no pods. */
  readonly unwritten?: Unwritten | undefined;
  readonly token: string | undefined;
}

/** So many containers of a job are followed at once; the gateway's own bound for all that a user follows is 16 by default. */
const mostAtOnce = 8;

/**
 * The log of all pods of a job, or of one of them where they are many: each container is a log of its own to the gateway, which
 * bounds how many a user may follow.
 */
export function LogView({ namespace, name, pods: all, byPod = false, unwritten, token }: LogViewProps): ReactNode {
  const { line } = useView();
  const [before, setChosen] = useState('');
  const [seen, setSeen] = useState('');
  if (line !== seen) setSeen(line);
  // A link is of one pod's line.
  const linked = line === seen ? undefined : all.find((one) => one.name === parseAddress(line)?.pod);
  const chosen = linked?.name ?? before;
  const many = byPod || all.reduce((sum, one) => sum + one.logs, 0) > mostAtOnce;
  if (!many) return <Log key={name} of={jobs} namespace={namespace} name={name} token={token} unwritten={all.length > 0 ? unwrittenBy(all) : unwritten} />;
  const pod = all.find((one) => one.name === chosen) ?? all.find(({ phase }) => phase === 'Failed') ?? all.find(({ phase }) => phase === 'Running') ?? all[0];
  if (!pod) return null;
  // Whatever becomes of the pods: who reads a log is not to be taken to another.
  if (pod.name !== before) setChosen(pod.name);
  const choose = (name: string): void => {
    setView({ line: '' }); // it is one of another pod
    setChosen(name);
  };
  const choice = (
    <select className="field" aria-label={t.pod} value={pod.name} onChange={(event) => choose(event.target.value)}>
      {all.map((one) => (
        <option key={one.uid} value={one.name} translate="no">{t.podState(one.name, stateName(one.state))}</option>
      ))}
    </select>
  );
  return <Log key={pod.name} of={pods} namespace={namespace} name={pod.name} token={token} choice={choice} unwritten={unwrittenBy([pod])} />;
}
