// JSON with whole numbers for which JavaScript has none: beyond 2^53 they would be told as others that are near.

import { answerTo, type Kubecast } from '@kubecast/sdk';

/** What has such a number stands out by so many digits. */
const long = /\d{16}/;
/** A text, which may have digits too, or a number. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;

const isUnsafe = (text: string): boolean => /^-?\d{16,}$/.test(text) && !Number.isSafeInteger(Number(text));

/** As JSON.parse, but that a whole number beyond 2^53 is a bigint. */
export function parseExact(text: string): unknown {
  if (!long.test(text)) return JSON.parse(text);
  const mark = `${Math.random()} ${Math.random()} `; // no text of the document begins so
  let some = false;
  const marked = text.replace(token, (one) => {
    if (!isUnsafe(one)) return one;
    some = true;
    return `"${mark}${one}"`;
  });
  if (!some) return JSON.parse(text);
  return JSON.parse(marked, (_, value: unknown) => (typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value));
}

/** What the gateway answers, with all numbers as they are. */
export const exactAnswerTo = (kc: Kubecast, path: string, init: RequestInit = {}): Promise<unknown> => answerTo(kc, path, init, parseExact);

/** Whether something that was parsed as usual has a number that may be another one. */
export function isRounded(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(isRounded);
}
