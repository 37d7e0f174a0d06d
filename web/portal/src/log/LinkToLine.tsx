// The link of a line: it is taken along, and whoever comes by it is led to the line.

import type { LogEntry } from '@kubecast/sdk';
import { useEffect, useState, type ReactNode } from 'react';
import { useCopied } from '../clipboard/useCopied.ts';
import { isAt, isBehind, lineAt, parseAddress, type Address } from './address.ts';
import type { Mark } from './Lines.tsx';
import { isAbort, saidBy } from './questions.ts';
import { t } from './texts.ts';
import { Moved, type Whole } from './whole.ts';

interface Linked {
  /** What has become of the link; empty: nothing is to be said. */
  readonly said: string;
  /** The reader is at the line already. */
  readonly isAt: (line: string) => void;
}

interface LineOf {
  readonly line: string;
  /** What was there has been told. */
  readonly ready: boolean;
  readonly entries: readonly LogEntry[];
  /** Nothing is before these. */
  readonly all: boolean;
  readonly whole: Whole;
  readonly setAt: (at: Mark) => void;
}

/** Finds the line of the page's address, in what is loaded or by its time. */
export function useLinkedLine({ line, ready, entries, all, whole, setAt }: LineOf): Linked {
  const [done, setDone] = useState({ line: '', said: '' });
  const find = async (): Promise<number | undefined> => {
    const address = parseAddress(line);
    const here = address && lineAt(entries, address, all);
    if (!address || here || !entries.some(({ type }) => type === 'line')) return here?.number;
    const place = await whole.placeOf(address.time);
    if (place === undefined) return undefined;
    return findFrom(place, address, whole);
  };
  const seeks = ready && line !== '' && line !== done.line;
  useEffect(() => {
    if (!seeks) return;
    find().then(
      (number) => {
        setDone({ line, said: number === undefined ? t.noLine : '' });
        if (number !== undefined) setAt({ id: number });
      },
      (failure: unknown) => setDone({ line, said: failure instanceof Moved ? t.noLine : isAbort(failure) ? '' : saidBy(failure) }),
    );
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for a link
  }, [line, seeks]);
  return { said: seeks ? t.loadingLines : done.line === line ? done.said : '', isAt: (to) => setDone({ line: to, said: '' }) };
}

/** So many lines before the first of its time are loaded, too. */
const context = 250;

/** The number of the line with an address, by the place of the first of its time. There may be more of one time than come at once. */
async function findFrom(place: number, address: Address, whole: Whole): Promise<number | undefined> {
  let { before } = address;
  for (let at = Math.max(0, place - context), end = false; !end;) {
    const entries = await whole.onward(at);
    const found = entries.find((entry) => isAt(entry, address) && before-- === 0);
    if (found) return found.number;
    end = entries.length === 0 || entries.some((entry) => isBehind(entry, address));
    at += entries.length;
  }
  return undefined;
}

/** Takes the link of the marked line along. */
export function LinkToLine({ onLink }: { readonly onLink: () => void }): ReactNode {
  const [copied, copy] = useCopied();
  const take = (): void => {
    onLink();
    copy(location.href); // the address bar has it anyway
  };
  return (
    <button type="button" className="button" title={t.linkTitle} onClick={take}>
      {copied ? t.linked : t.link}
    </button>
  );
}
