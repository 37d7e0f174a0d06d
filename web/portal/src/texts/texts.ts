// What the portal says. Each feature has its words beside it, in a file `texts.ts`, in all languages, so that they come with the
// page that needs them. A text that one language lacks, or has too much, does not compile.

import { language, type Language } from './language.ts';

/**
 * The words of a feature, in the language of the page. What depends on something is a function of it: languages differ in the
 * order of words and in their plurals ({@link file://./format.ts}).
 */
export function texts<T>(all: { readonly en: T } & Readonly<Record<Exclude<Language, 'en'>, NoInfer<T>>>): T {
  return all[language];
}

/** Words of which not all keys are known here: they come from the gateway, or from an address. */
export const byKey = (words: Readonly<Record<string, string>>): Readonly<Record<string, string>> => words;
