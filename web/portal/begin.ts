import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

/**
 * What shows the pages that are looked at first most of the time, as `pages/Route.tsx` loads it, by the first part of their address. A table has either form.
 * All other pages would make the first load heavier than it may be.
 */
const shown: Readonly<Record<string, readonly string[]>> = {
  mine: ['home/HomePage'],
  overview: ['overview/OverviewPage'],
  jobs: ['jobs/JobsPage', 'virtual/Tables'],
  pods: ['pods/PodsPage', 'virtual/Tables'],
};

/** Just what is asked of a file of the build. */
interface Chunk {
  readonly type: string;
  readonly isEntry?: boolean;
  readonly moduleIds?: readonly string[];
  readonly imports?: readonly string[];
  readonly viteMetadata?: { readonly importedCss: ReadonlySet<string> };
}

/**
 * Tells `start.js` which files a page needs beside those of the first load, so that they are asked for before the script that imports them is there.
 * The address of `start.js` gets a version by its content: a gateway that has just this one lets browsers keep it, and any other gateway has one, too.
 */
export function begin(): Plugin {
  let publicDir = '';
  return {
    name: 'kubecast-begin',
    apply: 'build',
    configResolved(config) {
      ({ publicDir } = config);
    },
    transformIndexHtml: {
      order: 'post',
      handler(html, { bundle = {} }) {
        const chunks = bundle as unknown as Readonly<Record<string, Chunk>>;
        const parts = Object.entries(shown).map(([page, modules]) => [page, filesOf(chunks, modules)]);
        const version = createHash('sha256').update(readFileSync(join(publicDir, 'start.js'))).digest('hex').slice(0, 24);
        const plain = 'src="./start.js"';
        if (!html.includes(plain)) throw new Error(`index.html has no ${plain}`);
        return html.replace(plain, `src="./start.js?v=${version}" data-parts='${JSON.stringify(Object.fromEntries(parts))}'`);
      },
    },
  };
}

/** The files in `assets` that these modules and their imports are in, but for those of the entry. */
function filesOf(chunks: Readonly<Record<string, Chunk>>, modules: readonly string[]): string[] {
  const names = new Set<string>();
  for (const module of modules) {
    const name = Object.keys(chunks).find((one) => chunks[one]?.moduleIds?.some((id) => id.endsWith(`/src/${module}.tsx`)));
    if (name === undefined) throw new Error(`no file of the build has ${module}.tsx`);
    names.add(name);
  }
  const styles = new Set<string>();
  for (const name of names) {
    const { isEntry, imports = [], viteMetadata } = chunks[name] ?? {};
    if (isEntry) names.delete(name);
    else {
      for (const one of imports) names.add(one);
      for (const style of viteMetadata?.importedCss ?? []) styles.add(style);
    }
  }
  return [...styles, ...names].map((name) => name.replace('assets/', ''));
}
