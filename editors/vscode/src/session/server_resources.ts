// What MCP servers offer to be attached, as a list to choose from. No VS Code in here.
import type { McpServerView, PromptBlock } from "../../../../protocol/kode";
import type { Attachment } from "../chat/messages";

/** `uri` may have places to fill in, in braces: then it is a template. */
export type Offer = { server: string; uri: string; name: string; isTemplate: boolean };

/** The resources and templates of all servers, as far as they are known. */
export function offers(servers: McpServerView[]): Offer[] {
  return servers.flatMap(({ name: server, resources = [], templates = [] }) => [
    ...resources.map(({ uri, name }) => ({ server, uri, name: name || uri, isTemplate: false })),
    ...templates.map(({ uriTemplate, name }) => ({ server, uri: uriTemplate, name: name || uriTemplate, isTemplate: true })),
  ]);
}

/** The first place to fill in, braces included: what an input box selects. */
export function firstPlace(uri: string): [number, number] {
  const found = /\{[^}]*\}/.exec(uri);
  return found ? [found.index, found.index + found[0].length] : [uri.length, uri.length];
}

/** What was read, one chip a block. */
export function attached(server: string, uri: string, blocks: readonly PromptBlock[]): Attachment[] {
  return blocks.map((block) => ({ label: uri.split("/").filter(Boolean).pop() ?? uri, title: `${server}:${uri}`, block }));
}
