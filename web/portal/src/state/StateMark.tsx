import type { ReactNode } from 'react';
import { toneOf, type Tone } from './tone.ts';
import { isNamed, stateName } from './texts.ts';
import './state.css';

const shapes: Record<Tone, ReactNode> = {
  failed: <path d="M4.5 4.5l7 7m0-7l-7 7" />,
  warning: <path d="M12.7 6.5A5 5 0 1 0 13 8.7M13 3.3v3.4H9.6" />,
  waiting: <circle cx="8" cy="8" r="4.8" strokeDasharray="2.6 2.43" />,
  running: <path className="solid" d="M5.3 3.8v8.4L12.3 8z" />,
  paused: <path d="M5.8 4v8m4.4-8v8" />,
  done: <path d="M3.5 8.5l3 3 6-7" />,
  ending: <path d="M4 8h8" />,
};

export function StateIcon({ state }: { state: string }): ReactNode {
  const tone = toneOf(state);
  return (
    <svg className={`state-icon tone-${tone}`} viewBox="0 0 16 16" aria-hidden="true">
      {shapes[tone]}
    </svg>
  );
}

/** A state with its sign, its name, and a word or two of why. */
export function StateMark({ state, detail, message }: { state: string; detail: string; message: string }): ReactNode {
  return (
    <span className="state-mark" data-state={state} title={[stateName(state), detail, message].filter(Boolean).join(' · ')}>
      <StateIcon state={state} />
      <span className="state-name" translate={isNamed(state) ? undefined : 'no'}>{stateName(state)}</span>
      {detail && <span className="state-detail" translate="no">{detail}</span>}
    </span>
  );
}
