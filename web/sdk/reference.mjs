// The reference of the SDK, from its types: markdown in dist/docs/. It fails if something that can be imported has no comment, or a
// comment links to what is not there.
import { Application, TSConfigReader, TypeDocReader } from 'typedoc';

const app = await Application.bootstrapWithPlugins({ options: 'typedoc.json' }, [new TypeDocReader(), new TSConfigReader()]);
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
