// The documents as a site, of the pages that build.mjs has put beside it.

import { existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pages, root } from '../pages.mjs';

const code = 'https://github.com/kubecast/kubecast/blob/main/';

const group = (text, pages) => ({ text, items: Object.entries(pages).map(([text, link]) => ({ text, link })) });

/** What is no page of the site is shown where the code is. */
function links(md) {
  md.core.ruler.push('code', ({ tokens, env }) => {
    for (const { type, children } of tokens) {
      if (type !== 'inline') continue;
      for (const token of children ?? []) {
        const href = token.attrGet('href');
        if (token.type !== 'link_open' || !href || /^([a-z]+:|#)/.test(href)) continue;
        const [path] = decodeURI(href).split('#');
        const at = relative(pages, join(dirname(env.path), path));
        if (existsSync(join(root, at)) && !statSync(join(pages, at), { throwIfNoEntry: false })?.isFile()) token.attrSet('href', code + at);
      }
    }
  });
}

export default {
  title: 'Kubecast',
  description: 'Kubernetes, live in the browser',
  srcDir: '.pages',
  outDir: 'dist',
  rewrites: { 'README.md': 'index.md' },
  markdown: { config: links, html: false },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Guides', link: '/docs/guides/' },
      { text: 'Wire', link: '/docs/wire' },
      { text: 'Operations', link: '/docs/operations' },
      { text: 'Changes', link: '/CHANGELOG' },
    ],
    sidebar: [
      group('SDK', { 'Begin': '/web/sdk/README', 'Reference': '/reference/README', 'Guides': '/docs/guides/', 'Signing in': '/docs/guides/sign-in', 'Server rendering': '/docs/guides/ssr', 'Vue': '/docs/guides/vue', 'Svelte': '/docs/guides/svelte', 'Solid': '/docs/guides/solid', 'Errors': '/docs/guides/errors', 'Offline': '/docs/guides/offline', 'Tabs': '/docs/guides/tabs', 'TanStack Query': '/docs/guides/tanstack-query', 'Tests': '/docs/guides/testing', 'React Native': '/docs/guides/react-native', 'Node, Deno, Bun': '/docs/guides/runtimes', 'Conformance': '/web/conformance/README' }),
      group('The contract', { 'Wire': '/docs/wire', 'Clients': '/docs/clients', 'Logs': '/docs/logs', 'History': '/docs/history', 'Notifications': '/docs/notifications', 'Glossary': '/docs/glossary' }),
      group('Operators', { 'Operations': '/docs/operations', 'Runbooks': '/docs/runbooks', 'Metrics': '/docs/metrics', 'Security': '/docs/security', 'Figures': '/docs/figures' }),
      group('Developers', { 'Architecture': '/docs/architecture', 'Decisions': '/docs/decisions', 'Contributing': '/CONTRIBUTING', 'Web': '/web/README' }),
    ],
    socialLinks: [{ icon: 'github', link: 'https://github.com/kubecast/kubecast' }],
  },
};
