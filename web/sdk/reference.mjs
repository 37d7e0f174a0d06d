// The reference of the SDK, from its types: markdown in dist/docs/. It fails if something that can be imported has no comment, or a
// comment links to what is not there.
import { Application, CommentTag, Converter, TSConfigReader, TypeDocReader } from 'typedoc';

const app = await Application.bootstrapWithPlugins({ options: 'typedoc.json' }, [new TypeDocReader(), new TSConfigReader()]);

// What the entries of frameworks have, by what it is about rather than by the alphabet. By the name in React's scheme, whatever the framework calls it.
const topics = {
  'A gateway for components': /^(Kubecast|kubecast$|.etKubecast)/,
  'Objects and lists': /^(Watch|Object|InfiniteList|LivePage|Count)$/,
  'Jobs: logs and history': /^(Logs|History|Transitions)$/,
  'Queues and notifications': /^(Queue|Queues|Notifications)$/,
  'Who the caller is': /^(Me|Access)$/,
  'Other sources, and the connection': /^(Follow|Connection)$/,
  Deprecated: /^(Followed|Counted|Logged)$/,
};
const frameworks = ['react', 'vue', 'svelte', 'solid'];

app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
  for (const entry of (project.children ?? []).filter(({ name }) => frameworks.includes(name))) {
    for (const what of entry.children ?? []) {
      const bare = what.name.replace(/^(useSuspense|use|create)(?=[A-Z])/, '');
      const name = bare === 'Kubecast' ? 'Kubecast' : bare.charAt(0).toUpperCase() + bare.slice(1);
      const topic = Object.keys(topics).find((topic) => topics[topic].test(what.name) || topics[topic].test(name));
      if (!topic) app.logger.error(`${entry.name}: ${what.name} is of no topic`);
      for (const one of what.signatures ?? [what]) one.comment?.blockTags.push(new CommentTag('@category', [{ kind: 'text', text: topic ?? 'Other' }]));
    }
  }
});

const project = await app.convert();
if (!project) process.exit(1);
app.validate(project);
for (const entry of project.children ?? []) {
  for (const what of entry.children ?? []) {
    if (!what.hasComment() && !what.signatures?.every((signature) => signature.hasComment())) {
      app.logger.error(`${entry.name}: ${what.name} has no comment`);
    }
  }
}
await app.generateOutputs(project);
process.exitCode = app.logger.hasErrors() || app.logger.hasWarnings() ? 1 : 0;
