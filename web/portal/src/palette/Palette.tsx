// Goes to any page, kind or object by its name: a combobox and its list, in a dialog.

import { useKubecast } from '@kubecast/sdk/react';
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { useServed, viewIn } from '../clusters/served.ts';
import { useClusters } from '../clusters/together.ts';
import { useRested } from '../scheduling/useRested.ts';
import { useSaved } from '../saved/saved.ts';
import { summaryOf } from '../saved/summary.ts';
import { useKinds } from '../kinds/discovery.ts';
import { shownPages, useHasQueues } from '../pages/shown.ts';
import { t as pages } from '../pages/texts.ts';
import { giveTypedAhead } from '../shortcuts/shortcuts.ts';
import { linkTo, linkToKind, useView } from '../view/view.ts';
import { find, findElsewhere, findPast, kindsFor, questionOf, still, type Entry, type Found, type Group } from './search.ts';
import { t } from './texts.ts';
import './palette.css';

interface Answer extends Found {
  /** What was typed for it. */
  readonly typed: string;
}

const nothing: Answer = { typed: '', groups: [], failed: [] };

/** What other clusters have answered, in the order in which they did. */
interface Elsewhere extends Answer {
  readonly answered: number;
  /** Of this question. */
  readonly of: AbortSignal | undefined;
}

const noneElsewhere: Elsewhere = { ...nothing, answered: 0, of: undefined };

export function Palette({ onClose }: { onClose: () => void }): ReactNode {
  const kc = useKubecast();
  const view = useView();
  const kinds = useKinds().data;
  const queues = useHasQueues();
  const [saved] = useSaved();
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const [moved, setMoved] = useState<string>();
  const [answer, setAnswer] = useState(nothing);
  const [past, setPast] = useState(nothing);
  const [elsewhere, setElsewhere] = useState(noneElsewhere);
  const rested = useRested(typed.trim());
  useLayoutEffect(() => {
    dialog.current?.showModal();
    giveTypedAhead(setTyped);
  }, []);
  // What is asked depends on the page on which the palette was opened; it stays that one.
  const [opened] = useState(view);
  const served = useServed();
  const clusters = useClusters(useMemo(() => ({ ...opened, only: '' }), [opened]));
  const others = useMemo(() => clusters.filter((one) => one.kc !== kc), [clusters, kc]);

  useEffect(() => {
    const question = questionOf(rested, kinds ?? [], opened.kind);
    if (question.text === '') return undefined;
    const control = new AbortController();
    const { signal } = control;
    const here = clusters.find((one) => one.kc === kc) ?? { name: '', kc };
    void find(here, question, opened, signal).then((found) => !signal.aborted && setAnswer({ ...found, typed: rested }));
    // They come behind all others, so they may come later.
    void findPast(here, question, opened, t.past, signal).then((found) => !signal.aborted && setPast({ ...found, typed: rested }));
    const add = (found: Found): void =>
      setElsewhere((before) => {
        const { groups, failed, answered } = before.of === signal ? before : noneElsewhere;
        return { typed: rested, of: signal, groups: [...groups, ...found.groups], failed: [...failed, ...found.failed], answered: answered + 1 };
      });
    for (const other of others) void findElsewhere(other, question, viewIn(served, opened, other.name), t.past, signal).then((found) => !signal.aborted && add(found));
    // What nobody waits for is not worth the gateway's time.
    return () => control.abort();
  }, [kc, rested, kinds, opened, clusters, others, served]);

  const text = typed.trim();
  const waiting = text !== '' && (answer.typed !== text || past.typed !== text || (others.length > 0 && (elsewhere.typed !== text || elsewhere.answered < others.length)));
  const failed = [answer, past, elsewhere].flatMap((one) => one.failed);
  const groups = useMemo((): readonly Group[] => {
    const unsearched = { ...opened, search: '' };
    const known: Group[] = [
      {
        title: t.pages,
        entries: shownPages(queues).filter((one) => pages.titles[one].toLowerCase().includes(text.toLowerCase()) || one.includes(text.toLowerCase())).map((one) => ({ href: linkTo(one, unsearched), label: pages.titles[one], detail: '' })),
      },
      { title: t.saved, entries: saved.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())).map(({ name, at }) => ({ href: at, key: `saved ${name}`, label: name, detail: summaryOf(at) })) },
      { title: t.kinds, entries: text === '' ? [] : kindsFor(text, kinds ?? []).map(({ id, kind, group }) => ({ href: linkToKind(id, unsearched), label: kind, detail: group })) },
    ];
    const objects = [answer, past, elsewhere].flatMap((one) => (text === '' ? [] : one.typed === text ? one.groups : still(one.groups, questionOf(text, kinds ?? [], opened.kind).text)));
    return [...known, ...objects].filter(({ entries }) => entries.length > 0);
  }, [opened, text, kinds, answer, past, elsewhere, queues, saved]);

  const entries = groups.flatMap((group) => group.entries);
  const at = Math.max(0, entries.findIndex((entry) => keyOf(entry) === moved));
  const active = entries[at];

  const open = (entry: Entry): void => {
    dialog.current?.close(); // gives the focus back, before the page changes
    goTo(entry.href);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return; // it is the input method's
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && entries.length > 0) {
      const to = entries[(at + step + entries.length) % entries.length];
      setMoved(to && keyOf(to));
      document.getElementById(idOf(to))?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter' && active) open(active);
    else return;
    event.preventDefault();
  };
  const idOf = (entry: Entry | undefined): string => (entry ? `palette-${entries.indexOf(entry)}` : '');

  return (
    <dialog ref={dialog} className="palette" aria-label={t.title} onClose={onClose} onClick={({ target }) => target === dialog.current && dialog.current?.close()}>
      <div className="palette-body">
        <input
          type="text"
          className="field"
          role="combobox"
          aria-label={t.title}
          aria-expanded={entries.length > 0}
          aria-controls="palette-list"
          aria-autocomplete="list"
          aria-activedescendant={active ? idOf(active) : undefined}
          placeholder={t.hint}
          autoFocus
          spellCheck={false}
          autoComplete="off"
          autoCapitalize="none"
          value={typed}
          onChange={({ target }) => {
            setTyped(target.value);
            setMoved(undefined);
          }}
          onKeyDown={onKeyDown}
        />
        <div id="palette-list" role="listbox" aria-label={t.found} className="palette-list">
          {groups.map(({ title, entries: some }) => (
            <div key={title} role="group" aria-label={title}>
              <div className="palette-title" aria-hidden="true">
                {title}
              </div>
              {some.map((entry) => (
                <div key={keyOf(entry)} id={idOf(entry)} role="option" aria-selected={entry === active} className="palette-entry" onPointerMove={() => setMoved(keyOf(entry))} onClick={() => open(entry)}>
                  <bdi translate="no">{entry.label}</bdi> {entry.detail && <bdi className="state-detail" translate="no">{entry.detail}</bdi>}
                </div>
              ))}
            </div>
          ))}
        </div>
        <p role="status" className="palette-status">
          {waiting ? t.searching : text === '' ? '' : failed.length > 0 ? t.failed(failed) : t.count(entries.length)}
        </p>
      </div>
    </dialog>
  );
}

const keyOf = ({ key, href }: Entry): string => key ?? href;

function goTo(href: string): void {
  location.hash = href;
}
