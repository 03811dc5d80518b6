// What a client does, whichever SDK it is: once through all that the server offers. What differs from one run to the
// next, such as a time, is left out, so that two reports can be compared.

export async function tour(client, { full, call }) {
  const report = {};
  report.tools = await settled(client);
  report.echo = (await call("echo", { message: "hello there" })).content;
  if (!full) return report;
  const has = (name) => report.tools.includes(name);

  const { resources } = await client.listResources();
  report.resources = resources.map((resource) => resource.uri).sort();
  const first = await client.readResource({ uri: report.resources[0] });
  report.resource = first.contents.map(({ uri, mimeType, text }) => ({ uri, mimeType, size: text?.length }));
  report.templates = (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate).sort();
  const { prompts } = await client.listPrompts();
  report.prompts = prompts.map((prompt) => prompt.name).sort();
  report.prompt = (await client.getPrompt({ name: "simple-prompt" })).messages;
  const ref = { type: "ref/prompt", name: "completable-prompt" };
  report.completion = (await client.complete({ ref, argument: { name: "department", value: "E" } })).completion.values;

  const texts = (result) => result.content.map((block) => block.text);
  if (has("get-structured-content")) {
    const result = await call("get-structured-content", { location: "Chicago" });
    report.structured = { keys: Object.keys(result.structuredContent ?? {}).sort(), blocks: result.content.length };
  }
  if (has("trigger-sampling-request")) {
    report.sampling = texts(await call("trigger-sampling-request", { prompt: "say something", maxTokens: 10 }));
  }
  if (has("trigger-elicitation-request")) {
    report.elicitation = texts(await call("trigger-elicitation-request", {}));
  }
  if (has("get-roots-list")) report.roots = texts(await call("get-roots-list", {}));

  const steps = [];
  const onprogress = ({ progress, total }) => steps.push([progress, total]);
  report.long = texts(await call("trigger-long-running-operation", { duration: 0.4, steps: 4 }, { onprogress }));
  // The last one may be overtaken by the result.
  report.progress = steps.slice(0, 3);
  const cancel = new AbortController();
  setTimeout(() => cancel.abort("the suite wants no more"), 300);
  const long = call("trigger-long-running-operation", { duration: 20, steps: 200 }, { signal: cancel.signal });
  report.cancelled = await long.then(() => false, () => true);
  report.after = (await call("echo", { message: "still here" })).content;
  report.unknown = await call("no-such-tool", {}).then(
    (result) => ({ isError: result.isError, said: texts(result) }),
    (error) => ({ code: error.code }),
  );
  return report;
}

// Some servers offer tools only once they have heard of the client's capabilities, which may be after the first list.
async function settled(client) {
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name).sort();
  let before = [];
  for (let look = 0; look < 50; look += 1) {
    const now = await names();
    if (now.length > 0 && now.join() === before.join()) return now;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return before;
}
