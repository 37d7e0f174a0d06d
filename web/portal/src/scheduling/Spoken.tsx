// A text that may change all the time: shown as it is, and read out so seldom that one can still listen to something else.

import { useEffect, useRef, useState, type ReactNode } from 'react';

/** In milliseconds: between one time it is read out and the next. */
const seldom = 30_000;
/** In milliseconds: who asks something else has the answer by then. */
const soon = 1_000;

interface SpokenProps {
  /** Empty: there is nothing to say yet. */
  readonly text: string;
  /** What the text answers. The answer to something else is read out without waiting for its turn. */
  readonly asked: string;
}

/** A live region, not to be seen. It is there before it says anything, or its first words are not read out. */
export function Spoken({ text, asked }: SpokenProps): ReactNode {
  const [spoken, setSpoken] = useState('');
  const last = useRef({ at: -Infinity, asked: '' });
  const askedAt = useRef(0);
  useEffect(() => {
    askedAt.current = performance.now();
  }, [asked]);
  useEffect(() => {
    if (text === spoken && (text === '' || asked === last.current.asked)) return undefined;
    const due = asked === last.current.asked ? last.current.at + seldom : askedAt.current + soon;
    const timer = setTimeout(
      () => {
        if (text !== '') last.current = { at: performance.now(), asked };
        setSpoken(text);
      },
      text === '' ? 0 : Math.max(0, due - performance.now()),
    );
    return () => clearTimeout(timer);
  }, [text, asked, spoken]);
  return (
    <span className="unseen" role="status">
      {spoken}
    </span>
  );
}
