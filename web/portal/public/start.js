// Runs before all else of the page. While gateways are replaced by newer ones, the one that is asked for the page's files may have others
// than the one that sent the page. Then the page is loaded anew, but only once for each file: it may be missing for good.
(() => {
  const kept = 'kubecast.missed';
  const started = () => Boolean(document.getElementById('root')?.firstChild);

  /** Whether it was missed before, in this tab; true if that cannot be remembered. */
  const missedBefore = (file) => {
    try {
      const files = sessionStorage.getItem(kept)?.split(' ') ?? [];
      if (files.includes(file)) return true;
      sessionStorage.setItem(kept, [...files, file].join(' '));
      return false;
    } catch {
      return true;
    }
  };

  const giveUp = () => {
    const [text, label] = navigator.language.startsWith('zh')
      ? ['门户的一部分无法加载。可能正在更新到新版本。', '重新加载']
      : ['A part of the portal could not be loaded. It may just be being replaced by a newer one.', 'Load it again'];
    const notice = Object.assign(document.createElement('p'), { textContent: text });
    notice.setAttribute('role', 'alert');
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: label });
    button.addEventListener('click', () => location.reload());
    document.getElementById('root')?.replaceChildren(notice, button);
  };

  addEventListener(
    'error',
    ({ target }) => {
      const file = target instanceof HTMLScriptElement ? target.src : target instanceof HTMLLinkElement ? target.href : '';
      // Once there is a page it says itself what it lacks.
      if (!/\/assets\/[^/]+\.(js|css)$/.test(file) || started()) return;
      if (!missedBefore(file)) setTimeout(() => location.reload(), 1_000);
      else if (target instanceof HTMLScriptElement) giveUp();
    },
    true,
  );

  // What the page needs next is asked for here, while its script is still on the way: over a line with a delay, waits in a row add up.
  const [path = '', query = ''] = location.hash.slice(1).split('?');
  const [page = '', object] = path.split('/');

  // Who is signed in, and how many rows a table has. The page takes each answer once (early/begun.ts), or asks itself if it is none.
  const begun = (globalThis.kubecastBegun = new Map());
  const base = location.pathname.replace(/^\/+/, '/').replace(/\/[^/]*$/, '');
  let token;
  try {
    token = sessionStorage.getItem(`kubecast.token${base && `@${base}`}`);
  } catch {
    // the browser keeps nothing for this page
  }
  const begin = (asked) => {
    const as = token ? { credentials: 'omit', headers: { Authorization: `Bearer ${token}` } } : { credentials: 'include' };
    begun.set(asked, fetch(base + asked, { ...as, cache: 'no-store', signal: AbortSignal.timeout(10_000) }).catch(() => undefined));
  };
  if (!token) begin('/auth/session');
  const params = new URLSearchParams(query);
  const namespace = params.get('ns');
  if (!object && /^(jobs|pods)$/.test(page) && !params.has('cluster'))
    begin(`/${page === 'jobs' ? 'apis/batch' : 'api'}/v1/${namespace ? `namespaces/${encodeURIComponent(namespace)}/` : ''}${page}?limit=1&fields=metadata.name`);

  // The page's own files come behind these: over HTTP/1.1 six requests at a time are under way.
  const parts = JSON.parse(document.currentScript?.dataset.parts ?? '{}');
  for (const file of (!object && parts[page || 'mine']) || []) {
    const [rel, as] = file.endsWith('.css') ? ['preload', 'style'] : ['modulepreload', 'script'];
    document.head.append(Object.assign(document.createElement('link'), { rel, as, crossOrigin: '', href: `./assets/${file}` }));
  }
})();
