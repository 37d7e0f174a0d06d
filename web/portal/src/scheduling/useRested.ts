import { useEffect, useState } from 'react';

/** In milliseconds. */
const rest = 200;

/** A value once it has stayed for a moment: arrow keys run through a list of choices, and each of them would be a stream. */
export function useRested<T>(value: T): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), rest);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}
