// Two runs of one name beside each other: how they ended, their times, what they used, and in what they were told to do something else.

import type { KubeObject, PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useEffect, useMemo, useRef, type ReactNode } from 'react';
import { Lasted, ranLonger } from '../age/Elapsed.tsx';
import { Choice } from '../filters/Choice.tsx';
import { endOf, outcomeOf } from '../history/outcome.ts';
import { ends } from '../job/life.ts';
import { exactSpec, usePastJob } from '../job/Kept.tsx';
import { jobs } from '../job/resources.ts';
import { useExact } from '../job/Yaml.tsx';
import { changedLines } from '../job/yaml.ts';
import { useReading, type Read } from '../polling/polling.ts';
import { causeName } from '../state/causes.ts';
import { StateMark } from '../state/StateMark.tsx';
import { stateName } from '../state/texts.ts';
import { whyNow } from '../state/why.ts';
import { formatDate, formatDuration, formatHours, formatNumber } from '../texts/format.ts';
import { marks } from '../texts/punctuation.ts';
import { formatWhen } from '../texts/when.ts';
import { linkToRun, setView, type View } from '../view/view.ts';
import { differences, type Difference } from './differences.ts';
import { t } from './texts.ts';
import './compare.css';

interface CompareProps {
  readonly here: PastJob;
  /** The other runs of the name, the newest first. */
  readonly others: readonly PastJob[];
  /** The object that has the name now. */
  readonly named: KubeObject | undefined;
  readonly view: View;
}

/** The run before; of the first one the next. */
export const before = (here: PastJob, others: readonly PastJob[]): PastJob | undefined => others.find(({ createdAt }) => createdAt < here.createdAt) ?? others.at(-1);

export function Compare({ here, others, named, view }: CompareProps): ReactNode {
  const uid = view.compare || before(here, others)?.uid;
  const listed = others.find((one) => one.uid === uid);
  // It may be older than those that are listed.
  const asked = usePastJob(jobs, here.namespace, here.name, listed ? undefined : uid, uid);
  const there = listed ?? asked.data;
  const waits = !listed && asked.at === undefined && !asked.error;
  // On a narrow screen it is far below the link that opened it.
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => frame.current?.scrollIntoView({ block: 'nearest' }), [uid]);
  if (uid === undefined) return <p className="job-none">{t.none}</p>;
  const options = others.map((one) => [one.uid, titleOf(one)] as const);
  const choice = <Choice label={t.choose} value={uid} options={listed ? options : [...options, [uid, there ? titleOf(there) : '–']]} onChoose={(compare) => setView({ compare })} />;
  if (!there || there.uid === here.uid) {
    return (
      <div className="job-none">
        {choice} <p>{waits ? t.loading : t.unknown}</p>
      </div>
    );
  }
  return (
    <div className="job-scroller" tabIndex={0} ref={frame}>
      <table className="compare">
        <caption className="unseen">{t.caption}</caption>
        <thead>
          <tr>
            <th scope="col">
              <span className="unseen">{t.what}</span>
            </th>
            <th scope="col">
              {t.here} <span className="compare-when">{formatWhen(here.createdAt)}</span>
            </th>
            <th scope="col">
              <a href={linkToRun(there, view)}>{t.there}</a> {choice}
            </th>
          </tr>
        </thead>
        <Outcome here={here} there={there} />
        <Times here={here} there={there} />
        <Usage here={here} there={there} />
        <Spec key={there.uid} here={here} there={there} named={named} />
      </table>
    </div>
  );
}

const titleOf = (job: PastJob): string => stateName(outcomeOf(job)) + marks.comma + formatDate(job.createdAt);

interface Two {
  readonly here: PastJob;
  readonly there: PastJob;
}

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactNode {
  return (
    <tbody>
      <tr className="compare-section">
        <th scope="rowgroup" colSpan={3}>
          {title}
        </th>
      </tr>
      {children}
    </tbody>
  );
}

/** Something of both; left out where neither has it, and marked where they differ. */
function Line({ title, marked = true, ...two }: Two & { readonly title: string; readonly marked?: boolean; readonly of: (job: PastJob) => string | number | undefined }): ReactNode {
  const [here, there] = [two.of(two.here), two.of(two.there)];
  if ((here ?? '') === '' && (there ?? '') === '') return null;
  const text = (value: string | number | undefined): ReactNode => (value === undefined || value === '' ? <span className="none">–</span> : typeof value === 'number' ? formatNumber(value) : value);
  return (
    <tr data-differs={(marked && here !== there) || undefined}>
      <th scope="row">{title}</th>
      <td translate="no">{text(here)}</td>
      <td translate="no">{text(there)}</td>
    </tr>
  );
}

function Outcome(two: Two): ReactNode {
  const { here, there } = two;
  return (
    <Section title={t.outcome}>
      <tr data-differs={outcomeOf(here) !== outcomeOf(there) || undefined}>
        <th scope="row">{t.state}</th>
        {[here, there].map((job) => (
          <td key={job.uid}>
            <StateMark state={outcomeOf(job)} detail={causeName(job.cause?.reason ?? '')} message="" />
          </td>
        ))}
      </tr>
      <Line title={t.why} {...two} of={whyNow} />
      <Line title={t.attempts} {...two} of={({ attempt }) => attempt} />
      <Line title={t.podsFailed} {...two} of={({ podFailures }) => podFailures ?? undefined} />
      <Line title={t.preemptions} {...two} of={({ preemptions }) => preemptions || undefined} />
      <Line title={t.owner} {...two} of={({ owner }) => owner} />
      <Line title={t.queue} {...two} of={({ queue }) => queue} />
    </Section>
  );
}

/** In the order in which a job goes through them; Running has a line of its own. No two runs have the same times, so these are not marked. */
const waits = ['Submitted', 'Queued', 'Suspended', 'Pending', 'Retrying'];

function Times(two: Two): ReactNode {
  const { here, there } = two;
  const lasted = (title: string, of: (job: PastJob) => ReactNode): ReactNode => (
    <tr>
      <th scope="row">{title}</th>
      {[here, there].map((job) => (
        <td key={job.uid}>{of(job)}</td>
      ))}
    </tr>
  );
  const date = (at: number | undefined): string | undefined => (at === undefined ? undefined : formatDate(at));
  return (
    <Section title={t.times}>
      {lasted(t.waited, ({ waited }) => <Lasted of={waited} />)}
      {lasted(t.ran, (job) => <Lasted of={job.ran} why least={ranLonger(job)} />)}
      {waits.map((state) => (
        <Line key={state} marked={false} title={t.inState(stateName(state))} {...two} of={({ durations }) => (durations[state] === undefined ? undefined : formatDuration(durations[state] * 1_000))} />
      ))}
      <Line marked={false} title={t.created} {...two} of={({ createdAt }) => date(createdAt)} />
      <Line marked={false} title={t.started} {...two} of={({ startedAt }) => date(startedAt)} />
      <Line marked={false} title={t.ended} {...two} of={(job) => (ends.has(job.state) ? date(endOf(job)) : undefined)} />
    </Section>
  );
}

function Usage(two: Two): ReactNode {
  const { here, there } = two;
  const requested = [...new Set([here, there].flatMap(({ requests = {} }) => Object.keys(requests)))].sort();
  const hours = (of: 'cpu' | 'memory' | 'gpu') => (job: PastJob) => (job.hours ? formatHours(job.hours[of]) : undefined);
  const gpus = [here, there].some((job) => (job.hours?.gpu ?? 0) > 0);
  return (
    <Section title={t.usage}>
      {requested.map((resource) => (
        <Line key={resource} title={t.requested(resource)} {...two} of={({ requests }) => requests?.[resource]} />
      ))}
      {gpus && <Line title={t.hours.gpu} {...two} of={hours('gpu')} />}
      <Line title={t.hours.cpu} {...two} of={hours('cpu')} />
      <Line title={t.hours.memory} {...two} of={hours('memory')} />
    </Section>
  );
}

/** So many differences are shown. */
const most = 500;

/** What a run was told to do, with all numbers as they are: of the one that is there its object, else what is kept. */
function useSpec({ namespace, name, uid }: PastJob, named: KubeObject | undefined): Read<KubeObject | undefined> {
  const kc = useKubecast();
  const there = named?.metadata.uid === uid;
  const read = useMemo(() => () => (there ? Promise.resolve(undefined) : exactSpec(kc, jobs, { namespace, name, uid })), [kc, namespace, name, uid, there]);
  const kept = useReading(read, undefined);
  const exact = useExact(there ? named : undefined, jobs);
  return there ? { ...kept, data: exact, error: undefined, at: exact && kept.at } : kept;
}

function Spec({ here, there, named }: Two & { readonly named: KubeObject | undefined }): ReactNode {
  const [one, other] = [useSpec(here, named), useSpec(there, named)];
  const found = useMemo(() => (one.data && other.data ? differences(one.data, other.data) : undefined), [one.data, other.data]);
  const error = one.error ?? other.error;
  const said = found ? (found.length === 0 ? t.specSame : '') : error ? t.specDenied : one.at === undefined || other.at === undefined ? t.loading : t.specNone;
  return (
    <Section title={t.spec}>
      {said && (
        <tr>
          <td colSpan={3}>
            {said} {!found && error && <span translate="no">{error.message}</span>}
          </td>
        </tr>
      )}
      {found?.slice(0, most).map((difference, n) => (
        <tr key={n} data-differs data-path={difference.path}>
          <th scope="row" className="compare-path" translate="no">
            <Path text={difference.path} />
          </th>
          <Value of={difference} side="here" />
          <Value of={difference} side="there" />
        </tr>
      ))}
      {found && found.length > most && (
        <tr>
          <td colSpan={3}>{t.specMore(found.length - most)}</td>
        </tr>
      )}
    </Section>
  );
}

/** It breaks between its steps. */
function Path({ text }: { readonly text: string }): ReactNode {
  return text.split(/(?=[.[])/).map((part, n) => (
    <span key={n}>
      {part}
      <wbr />
    </span>
  ));
}

function Value({ of: { here, there }, side }: { readonly of: Difference; readonly side: 'here' | 'there' }): ReactNode {
  const value = side === 'here' ? here : there;
  const other = side === 'here' ? there : here;
  if (value === undefined) return <td className="none">{t.absent}</td>;
  const lines = value.split('\n');
  if (lines.length === 1 || other === undefined) {
    return (
      <td className="compare-value" translate="no">
        {value}
      </td>
    );
  }
  const changed = changedLines(other.split('\n'), lines);
  return (
    <td className="compare-value" translate="no">
      {lines.map((line, n) => changed.has(n) ? <div key={n} className="yaml-changed">{line || ' '}</div> : !changed.has(n - 1) && n > 0 ? null : <div key={n} className="none" title={t.same}>…</div>)}
    </td>
  );
}
