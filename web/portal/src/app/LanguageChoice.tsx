import type { ReactNode } from 'react';
import { chooseLanguage, language, languages, type Language } from '../texts/language.ts';
import { t } from './texts.ts';

export function LanguageChoice(): ReactNode {
  return (
    <select className="field language" aria-label={t.language} value={language} translate="no" onChange={({ target }) => chooseLanguage(target.value as Language)}>
      {Object.entries(languages).map(([tag, name]) => (
        <option key={tag} value={tag} lang={tag}>
          {name}
        </option>
      ))}
    </select>
  );
}
