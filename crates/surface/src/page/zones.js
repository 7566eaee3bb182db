// Zones: what is in force, edits with a preview of the pairs that gain and lose access, commit and
// undo.

import { request } from "./api.js";
import { el, put, section } from "./dom.js";
import { table } from "./table.js";
import { outcome, tableOf } from "./views.js";

const members = (text) => text.split(/[\s,;]+/).filter(Boolean);
/** A member as in the lab file; a name of an alias is an object. */
const member = (text, aliases) => (aliases.has(text) ? { alias: text } : text);

/** Edits by their names in the form: fields, and the edit that they make. */
const EDITS = {
  "Create a zone": ["name", "members", (f, a) => ({ edit: "create_zone", name: f.name, zone: { members: members(f.members).map((m) => member(m, a)) } })],
  "Add members to a zone": ["name", "members", (f, a) => ({ edit: "add_to_zone", name: f.name, zone: { members: members(f.members).map((m) => member(m, a)) } })],
  "Remove members from a zone": ["name", "members", (f, a) => ({ edit: "remove_from_zone", name: f.name, zone: { members: members(f.members).map((m) => member(m, a)) } })],
  "Delete a zone": ["name", null, (f) => ({ edit: "delete", kind: "zone", name: f.name })],
  "Create an alias": ["name", "members", (f) => ({ edit: "create_alias", name: f.name, members: members(f.members) })],
  "Delete an alias": ["name", null, (f) => ({ edit: "delete", kind: "alias", name: f.name })],
  "Create a configuration": ["name", "zones", (f) => ({ edit: "create_config", name: f.name, zones: members(f.members) })],
  "Add zones to a configuration": ["name", "zones", (f) => ({ edit: "add_to_config", name: f.name, zones: members(f.members) })],
  "Remove zones from a configuration": ["name", "zones", (f) => ({ edit: "remove_from_config", name: f.name, zones: members(f.members) })],
  "Enable a configuration": ["name", null, (f) => ({ edit: "enable", config: f.name })],
  "Disable zoning": [null, null, () => ({ edit: "disable" })],
};

export function zones(app) {
  const may = app.may("operate");
  const on = app.params().get("switch") || undefined;
  const edits = [];
  let status = null;
  const kind = el("select", { id: "edit-kind", change: () => fields() }, Object.keys(EDITS).map((name) => el("option", {}, name)));
  const name = el("input", { id: "edit-name", list: "zone-names", autocomplete: "off" });
  const list = el("input", { id: "edit-members", list: "zone-members", size: 50, autocomplete: "off" });
  const [nameLabel, listLabel, listWord] = [el("label", {}, "Name ", name), el("label", {}), el("span")];
  listLabel.append(listWord, " ", list);
  const pending = el("ol", { id: "edits" });
  const preview = el("div", { id: "preview" });
  const result = outcome();
  const commit = el("button", { type: "button", class: "main", id: "commit", disabled: true, click: () => run(commitNow, () => "The change is in force in the whole fabric.") }, "Commit");
  const discard = el("button", { type: "button", click: () => { edits.length = 0; draw(); } }, "Discard the edits");
  const undo = el("button", { type: "button", id: "undo", disabled: true, click: () => run(() => request({ request: "zone", switch: on, do: "rollback" }), () => "The database before the last change is in force again.") }, "Undo the last change");
  const show = el("button", { type: "button", id: "show-preview", disabled: true, click: () => previewNow() }, "Preview");
  const effective = el("div");
  const names = el("datalist", { id: "zone-names" });
  const known = el("datalist", { id: "zone-members" });

  function fields() {
    const [first, second] = EDITS[kind.value];
    nameLabel.hidden = !first;
    listLabel.hidden = !second;
    listWord.textContent = second === "zones" ? "Zones" : "Members";
  }
  function draw() {
    put(pending, ...edits.map((edit, i) => el("li", {}, el("code", {}, JSON.stringify(edit)), " ", el("button", { type: "button", click: () => { edits.splice(i, 1); draw(); } }, "Remove"))));
    show.disabled = !edits.length;
    discard.disabled = !edits.length;
    // Only what was previewed can be committed.
    commit.disabled = true;
    put(preview);
    undo.disabled = !may || !status?.can_roll_back;
  }
  async function read() {
    const before = status;
    status = await request({ request: "zone", switch: on, do: "show" });
    const base = status.committed;
    put(names, ...[...Object.keys(base.zones), ...Object.keys(base.aliases), ...Object.keys(base.configs)].map((value) => el("option", { value })));
    put(known, ...Object.keys(base.aliases).map((value) => el("option", { value })), ...status.ports.map((port) => el("option", { value: port.port_name }, port.name)));
    const rows = Object.entries(base.zones).map(([zone, of]) => ({ zone, members: [...(of.principals ?? []).map((m) => `principal ${m.alias ?? m}`), ...of.members.map((m) => m.alias ?? m)].join(" "), in_force: status.state.zones.includes(zone) ? "in force" : "" }));
    put(effective, el("p", {}, `Configuration in force: ${status.state.effective ?? "none"}; ports in no zone ${status.state.default_open ? "may" : "may not"} communicate. Generation ${status.state.generation}.`), status.problems.length ? el("p", { class: "error" }, status.problems.join("; ")) : null, rows.length ? table("Defined zones", ["zone", "members", "in_force"], rows, {}) : el("p", { class: "note" }, "No zone is defined."));
    undo.disabled = !may || !status.can_roll_back;
    if (before && before.state.generation !== status.state.generation && edits.length) draw();
  }
  const run = (work, done) => result.run(async () => { const answer = await work(); await read(); return answer; }, done);
  /** Definitions take effect when their configuration is enabled again. */
  function enables(found) {
    const config = status.state.effective;
    if (!config || found.gains.length || found.loses.length || edits.some((edit) => edit.edit === "enable" || edit.edit === "disable")) return null;
    const add = () => { edits.push({ edit: "enable", config }); draw(); previewNow(); };
    return el("p", {}, `The edits change definitions only. They take effect when ${config} is enabled again. `, el("button", { type: "button", id: "also-enable", click: add }, `Also enable ${config}`));
  }
  async function previewNow() {
    await result.run(async () => {
      const found = await request({ request: "zone", switch: on, do: "preview", edits });
      const pairs = (title, of, mark) => el("div", {}, el("h3", {}, `${of.length} pairs ${title}`), el("ul", {}, of.slice(0, 200).map(([a, b]) => el("li", { class: mark }, `${a} – ${b}`))));
      put(preview, pairs("gain access", found.gains, "gain"), pairs("lose access", found.loses, "lose"), enables(found), el("p", { class: "note" }, `${found.unchanged_pairs} pairs and ${found.unaffected_ports} ports do not change.`));
      commit.disabled = !may;
      return found;
    }, () => "Nothing has changed yet.");
  }
  async function commitNow() {
    await request({ request: "zone", switch: on, do: "edit", edits });
    try {
      await request({ request: "zone", switch: on, do: "commit" });
    } catch (error) {
      await request({ request: "zone", switch: on, do: "abort" }).catch(() => {});
      throw error;
    }
    edits.length = 0;
    draw();
  }
  const add = (event) => {
    event.preventDefault();
    const aliases = new Set(Object.keys(status?.committed.aliases ?? {}));
    edits.push(EDITS[kind.value].at(-1)({ name: name.value.trim(), members: list.value }, aliases));
    list.value = "";
    draw();
  };
  fields();
  draw();
  read().catch((error) => { result.className = "error"; result.textContent = error.message; });
  app.on("changed", (tables) => { if (tables.includes("zone")) read().catch(() => {}); });
  return el("div", {}, section("Zones", effective, names, known),
    section("Change", may ? null : el("p", { class: "note" }, "Your role permits a preview only."), el("form", { class: "bar", submit: add }, el("label", {}, "Edit ", kind), nameLabel, listLabel, el("button", { id: "add-edit" }, "Add to the edits")), pending, el("div", { class: "bar" }, show, commit, discard, undo), result, preview),
    section("Effective zones", tableOf(app, "zone")));
}
