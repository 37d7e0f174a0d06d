import { isFinal, type KubeObject, type PastJob, type Resource, runs, type Status } from '@kubecast/sdk';
import { useFollow } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import type { PodRow } from '../pods/pod.ts';
import { StateMark } from '../state/StateMark.tsx';
import { stateName } from '../state/texts.ts';
import { toneOf } from '../state/tone.ts';
import { formatDuration, formatNumber } from '../texts/format.ts';
import { marks } from '../texts/punctuation.ts';
import { formatWhen } from '../texts/when.ts';
import { linkToObject, type View } from '../view/view.ts';
import { Listing } from './Listing.tsx';
import { livesOf, type PodLife } from './lives.ts';
import { t } from './texts.ts';

interface PodsProps {
  /** Those that there are now. */
  readonly rows: readonly PodRow[];
  readonly status: Status;
  readonly message: string | undefined;
  readonly view: View;
}

/** So many of the newest pods of a job are told, those that are gone among them. */
const most = 500;

/** The pods that there are now, and those that were. */
export function PodsEver({ of, past, rows, status, message, view }: PodsProps & { readonly of: Resource<KubeObject>; readonly past: Pick<PastJob, 'namespace' | 'uid' | 'podCount' | 'parent'> }): ReactNode {
  const told = useFollow(runs(of, { namespace: past.namespace, job: past.uid, limit: most }));
  const lives = useMemo(() => livesOf(rows, told.data), [rows, told.data]);
  const standing = lives.length === 0 && told.status === 'loading' ? 'loading' : lives.length > 0 && isFinal({ status }) ? told.status : status;
  const { parent, podCount } = past;
  const others = (podCount ?? 0) - lives.length;
  return (
    <>
      {parent && (
        <p className="job-kept">
          {t.pods.ofParent} <a href={linkToObject(parent.resource, past.namespace, parent.name, view)} translate="no">{parent.name}</a>
        </p>
      )}
      {others > 0 && told.status === 'live' && <p className="job-kept">{t.pods.more(others)}</p>}
      <PodList lives={lives} status={standing} message={message} view={view} />
    </>
  );
}

/** The same where no history is kept. */
export function PodsNow({ rows, ...more }: PodsProps): ReactNode {
  return <PodList lives={useMemo(() => livesOf(rows, []), [rows])} {...more} />;
}

function PodList({ lives, status, message, view }: Omit<PodsProps, 'rows'> & { readonly lives: readonly PodLife[] }): ReactNode {
  const { denied, none, headers } = t.pods;
  const ranked = lives.some(({ run }) => run?.index);
  return (
    <Listing status={status} message={message} denied={denied} none={none} headers={[headers.name, headers.state, ...(ranked ? [headers.index] : []), headers.node, headers.started, headers.ended, headers.ran, headers.restarts, headers.end]}>
      {lives.map((life) => (
        <tr key={life.uid} data-name={life.name}>
          <td className="cell-name" translate="no">
            {life.there ? (
              <a className="row-link" href={linkToObject('pods', life.namespace, life.name, view)}>
                {life.name}
              </a>
            ) : (
              life.name
            )}
          </td>
          <td>
            <StateMark state={life.state} detail={life.detail} message={life.message} />
          </td>
          {ranked && <td className="cell-number" translate="no">{life.run?.index || '–'}</td>}
          <td translate="no">{life.node ? <a href={linkToObject('nodes', '', life.node, view)}>{life.node}</a> : '–'}</td>
          <td>
            <Moment at={life.run?.startedAt} />
          </td>
          <td>
            <Moment at={life.run?.endedAt} />
          </td>
          <td>
            <Ran life={life} />
          </td>
          <td className={life.restarts === 0 ? 'none' : 'cell-number'}>{formatNumber(life.restarts)}</td>
          <td className="job-message">
            <End life={life} />
          </td>
        </tr>
      ))}
    </Listing>
  );
}

function Moment({ at }: { at: number | undefined }): ReactNode {
  return at === undefined ? <span className="none">–</span> : <time dateTime={new Date(at).toISOString()}>{formatWhen(at)}</time>;
}

function Ran({ life: { run } }: { life: PodLife }): ReactNode {
  if (run?.startedAt === undefined) return <span className="none">–</span>;
  return run.endedAt === undefined ? <Age since={run.startedAt} /> : <>{formatDuration(run.endedAt - run.startedAt)}</>;
}

/** The container that decided it, its exit code or signal, the reason in Kubernetes' own word, and what was said of it, which is a stranger's text. */
function End({ life: { run, state } }: { life: PodLife }): ReactNode {
  if (!run || (run.endedAt === undefined && run.exitCode === undefined)) return <span className="none">–</span>;
  const { container, exitCode, signal, reason, message } = run;
  const how = exitCode !== undefined ? t.pods.exit(exitCode) : signal !== undefined ? t.pods.signal(signal) : '';
  return (
    <>
      <span translate="no">{[container, stateName(reason)].filter(Boolean).join(marks.colon)}</span>
      {how && <span className={toneOf(state) === 'failed' ? 'job-failed' : undefined}> {how}</span>}
      {message && <div className="state-detail" translate="no">{message}</div>}
    </>
  );
}
