// What the gateway says of causes and of waits, in the page's language.

import type { Cause } from '@kubecast/sdk';
import { language } from '../texts/language.ts';
import { ownReason } from './causes.ts';

let chinese: typeof import('./chinese.ts') | undefined;

/** Until it can be said; undefined: it can. Where it cannot be loaded, the gateway's own words serve. */
export const untilSaid: Promise<void> | undefined =
  language === 'zh-CN' ? import('./chinese.ts').then((words) => void (chinese = words), () => undefined) : undefined;

export const saidOf = (cause: Cause): string => (cause.pod ? undefined : wordsOf(cause.text, cause.reason)) ?? chinese?.ofCause(cause) ?? cause.text;

/** A text of the gateway that has a reason of a Job's controller in it, with words in its place. */
export const inWordsOf = (text: string, reason: string): string => {
  const words = ownReason(reason);
  return words === undefined ? text : text.replace(reason, () => words);
};

/** What there is to say of a reason of a Job's controller; undefined if it is none. That of a pod failure policy names the container and its exit code beside it. */
export const wordsOf = (text: string, reason: string): string | undefined => (reason === 'PodFailurePolicy' ? inWordsOf(text, reason) : ownReason(reason));

/** A word of Kubernetes' own, as OOMKilled or DiskPressure: in words, with the word beside them, by which one finds more of it. */
export const wordOf = (word: string): string => chinese?.ofWord(word) ?? word;

export const saidOfWait = (text: string): string => chinese?.ofReason(text) ?? text;
