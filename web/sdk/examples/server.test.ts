// What a server renders must say that nothing is known yet, and must not begin to watch anything.
import { expect, test } from 'vitest';
import { render } from 'svelte/server';
import { createSSRApp, h } from 'vue';
import { renderToString } from 'vue/server-renderer';
import { createKubecast } from '@kubecast/sdk';
import { kubecast } from '@kubecast/sdk/vue';
import { ScriptedFetch } from '../../mock/fetch.ts';
import SvelteApp from './App.svelte';
import VueJobs from './RunningJobs.vue';

test('a server renders each of them, and watches nothing', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
  expect(await renderToString(createSSRApp({ render: () => h(VueJobs, { team: 'a' }) }).use(kubecast(kc)))).toContain('Loading');
  expect(render(SvelteApp, { props: { kc, first: 'a', told: () => undefined } }).body).toContain('Loading');
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(server.requests).toHaveLength(0);
  kc.close();
});
