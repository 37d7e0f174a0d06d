// In which language the page speaks. It stays the same while the page lives: choosing another one loads the page anew, so
// that no text that was already made, in whatever module, is left over in the old language.

/** Each by its own name, for whoever cannot read the others'. */
export const languages = { en: 'English', 'zh-CN': '简体中文' } as const;

export type Language = keyof typeof languages;

const key = 'kubecast.language';

const isLanguage = (tag: string | null): tag is Language => tag !== null && Object.hasOwn(languages, tag);

/** What was chosen here before, else the first of the browser's languages that is there. */
export function preferred(chosen: string | null, wanted: readonly string[]): Language {
  if (isLanguage(chosen)) return chosen;
  for (const tag of wanted) {
    if (/^zh\b/i.test(tag)) return 'zh-CN';
    if (/^en\b/i.test(tag)) return 'en';
  }
  return 'en';
}

/** What was chosen here before. */
export function remembered(of: string): string | null {
  try {
    return localStorage.getItem(of);
  } catch {
    return null; // the browser keeps nothing for this page
  }
}

/** Keeps a choice that all of the page depends on, and loads it anew. */
export function remember(of: string, next: string): void {
  try {
    localStorage.setItem(of, next);
  } catch {
    return; // it would be forgotten at once
  }
  location.reload();
}

export const language: Language = preferred(remembered(key), navigator.languages);

/** With the region that the browser names for it: dates and numbers differ within one language. */
export const locale: string = navigator.languages.find((tag) => tag.split('-')[0] === language.split('-')[0]) ?? language;

export const chooseLanguage = (next: Language): void => remember(key, next);
