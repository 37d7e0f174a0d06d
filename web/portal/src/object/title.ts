// What the title of the page of one object says of it.

import { useToldTitle } from '../app/title.ts';
import { causeName, isCauseNamed } from '../state/causes.ts';
import { stateName } from '../state/texts.ts';
import { marks } from '../texts/punctuation.ts';
import { toneOf, type Tone } from '../state/tone.ts';

/** As the signs beside states, as far as there are characters like them. */
const signs: Readonly<Record<Tone, string>> = { failed: '✗', warning: '↻', waiting: '◌', running: '▶', paused: '‖', done: '✓', ending: '–' };

/** How an object is doing, for the title. */
export interface Standing {
  readonly state: string;
  /** Why it failed, as causes are named; empty: it did not, or nobody knows. */
  readonly cause: string;
}

export function useStandingInTitle(name: string, standing: Standing | undefined): void {
  const { state = '', cause = '' } = standing ?? {};
  const words = isCauseNamed(cause) ? causeName(cause) : stateName(cause || state);
  useToldTitle(state && `${signs[toneOf(state)]} ${name}${marks.colon}${words}`);
}
