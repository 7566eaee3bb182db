// Zones: what is in force, edits with a preview of the pairs that gain and lose access, commit and
// undo.

import { request } from "./api.js";
import { el, put, section } from "./dom.js";
import { table } from "./table.js";
import { outcome, tableOf } from "./views.js";

/** Members in a list; two numbers with a comma are one member: domain and port. */
const members = (text) => text.match(/(?<=^|[\s,;])\d+,\d+(?=$|[\s,;])|[^\s,;]+/g) ?? [];
/** A member as in the lab file; a name of an alias is an object. */
const member = (text, aliases) => (aliases.has(text) ? { alias: text } : text);

const zone = (f, a) => ({ members: members(f.members).map((m) => member(m, a)), ...(members(f.principals).length ? { principals: members(f.principals).map((m) => member(m, a)) } : {}) });
/** The kind of an object, by its name in the form. */
const kinds = ["zone", "alias", "configuration"];
const kindOf = (name) => (name === "configuration" ? "config" : name);

/** Edits by their names in the form: labels of the fields, and the edit that they make. */
const EDITS = {
  "Create a zone": [{ name: "Name", members: "Members" }, (f, a) => ({ edit: "create_zone", name: f.name, zone: zone(f, a) })],
  "Create a peer zone": [{ name: "Name", members: "Members", principals: "Principals" }, (f, a) => ({ edit: "create_zone", name: f.name, zone: zone(f, a) })],
  "Add members to a zone": [{ name: "Name", members: "Members", principals: "Principals of a peer zone" }, (f, a) => ({ edit: "add_to_zone", name: f.name, zone: zone(f, a) })],
  "Remove members from a zone": [{ name: "Name", members: "Members", principals: "Principals of a peer zone" }, (f, a) => ({ edit: "remove_from_zone", name: f.name, zone: zone(f, a) })],
  "Create an alias": [{ name: "Name", members: "Members" }, (f) => ({ edit: "create_alias", name: f.name, members: members(f.members) })],
  "Add members to an alias": [{ name: "Name", members: "Members" }, (f) => ({ edit: "add_to_alias", name: f.name, members: members(f.members) })],
  "Remove members from an alias": [{ name: "Name", members: "Members" }, (f) => ({ edit: "remove_from_alias", name: f.name, members: members(f.members) })],
  "Create a configuration": [{ name: "Name", members: "Zones" }, (f) => ({ edit: "create_config", name: f.name, zones: members(f.members) })],
  "Add zones to a configuration": [{ name: "Name", members: "Zones" }, (f) => ({ edit: "add_to_config", name: f.name, zones: members(f.members) })],
  "Remove zones from a configuration": [{ name: "Name", members: "Zones" }, (f) => ({ edit: "remove_from_config", name: f.name, zones: members(f.members) })],
  ...Object.fromEntries(kinds.map((kind) => [`Rename ${kind === "alias" ? "an" : "a"} ${kind}`, [{ name: "Name", members: "New name" }, (f) => ({ edit: "rename", kind: kindOf(kind), from: f.name, to: f.members.trim() })]])),
  ...Object.fromEntries(kinds.map((kind) => [`Delete ${kind === "alias" ? "an" : "a"} ${kind}`, [{ name: "Name" }, (f) => ({ edit: "delete", kind: kindOf(kind), name: f.name })]])),
  ...Object.fromEntries(["zone", "alias"].map((kind) => [`Delete ${kind === "alias" ? "an" : "a"} ${kind} and remove it from all lists`, [{ name: "Name" }, (f) => ({ edit: "expunge", kind, name: f.name })]])),
  "Enable a configuration": [{ name: "Name" }, (f) => ({ edit: "enable", config: f.name })],
  "Disable zoning": [{}, () => ({ edit: "disable" })],
  "Let ports in no zone communicate": [{}, () => ({ edit: "set_default", open: true })],
  "Do not let ports in no zone communicate": [{}, () => ({ edit: "set_default", open: false })],
};

/** Names of the aliases after some edits. */
function aliasesAfter(committed, edits) {
  const names = new Set(Object.keys(committed));
  for (const edit of edits) {
    const isAlias = edit.kind === "alias";
    if (edit.edit === "create_alias") names.add(edit.name);
    if (isAlias && (edit.edit === "delete" || edit.edit === "expunge")) names.delete(edit.name);
    if (isAlias && edit.edit === "rename" && names.delete(edit.from)) names.add(edit.to);
  }
  return names;
}

/** Fabrics with their first switch. Each fabric has a database of its own. */
function fabricsOf(graph) {
  const first = new Map();
  for (const shape of graph.shapes) {
    if (shape.kind === "switch" && !shape.plane && !first.has(shape.fabric ?? 0)) first.set(shape.fabric ?? 0, shape.members?.[0] ?? shape.label);
  }
  return first.size > 1 ? [...first].map(([fabric, on]) => ({ label: graph.fabrics[fabric]?.label ?? on, on })) : [];
}

export function zones(app) {
  const may = app.may("operate");
  const on = app.params().get("switch") || undefined;
  const fabrics = fabricsOf(app.graph);
  const switchFabric = (name) => app.graph.shapes.find((shape) => shape.kind === "switch" && (shape.label === name || shape.members?.includes(name)))?.fabric;
  const here = fabrics.find((fabric) => (on ? switchFabric(fabric.on) === switchFabric(on) : true));
  const choice = el("select", { id: "zone-fabric", change: () => { app.set({ switch: choice.value }, true); app.again(); } }, fabrics.map((fabric) => el("option", { value: fabric.on, selected: fabric === here }, `${fabric.label} (${fabric.on})`)));
  const edits = [];
  let status = null;
  const kind = el("select", { id: "edit-kind", change: () => fields() }, Object.keys(EDITS).map((name) => el("option", {}, name)));
  const name = el("input", { id: "edit-name", list: "zone-names", autocomplete: "off" });
  const list = el("input", { id: "edit-members", list: "zone-members", size: 50, autocomplete: "off" });
  const others = el("input", { id: "edit-principals", list: "zone-members", size: 30, autocomplete: "off" });
  const labelled = (input) => { const word = el("span"); const label = el("label", {}, word, " ", input); label.say = (text) => { label.hidden = !text; word.textContent = text ?? ""; }; return label; };
  const [nameLabel, listLabel, othersLabel] = [labelled(name), labelled(list), labelled(others)];
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
    const [labels] = EDITS[kind.value];
    nameLabel.say(labels.name);
    listLabel.say(labels.members);
    othersLabel.say(labels.principals);
  }
  function draw() {
    put(pending, ...edits.map((edit, i) => el("li", {}, el("code", {}, JSON.stringify(edit)), " ", el("button", { type: "button", click: () => { edits.splice(i, 1); draw(); } }, "Remove"))));
    show.disabled = !edits.length;
    discard.disabled = !edits.length;
    // Only what was previewed can be committed.
    commit.disabled = true;
    put(preview);
    suggest();
    undo.disabled = !may || !status?.can_roll_back;
  }
  function suggest() {
    put(known, ...[...aliasesAfter(status?.committed.aliases ?? {}, edits)].map((value) => el("option", { value })), ...(status?.ports ?? []).map((port) => el("option", { value: port.port_name }, port.name)));
  }
  async function read() {
    const before = status;
    status = await request({ request: "zone", switch: on, do: "show" });
    const base = status.committed;
    put(names, ...[...Object.keys(base.zones), ...Object.keys(base.aliases), ...Object.keys(base.configs)].map((value) => el("option", { value })));
    suggest();
    const rows = Object.entries(base.zones).map(([zone, of]) => ({ zone, members: [...(of.principals ?? []).map((m) => `principal ${m.alias ?? m}`), ...of.members.map((m) => m.alias ?? m)].join(" "), in_force: status.state.zones.includes(zone) ? "in force" : "" }));
    put(effective, el("p", {}, `Database of ${here ? `fabric ${here.label}, read at ` : "the fabric, read at "}${status.switch}. Configuration in force: ${status.state.effective ?? "none"}; ports in no zone ${status.state.default_open ? "may" : "may not"} communicate. Generation ${status.state.generation}.`), status.problems.length ? el("p", { class: "error" }, status.problems.join("; ")) : null, rows.length ? table("Defined zones", ["zone", "members", "in_force"], rows, {}) : el("p", { class: "note" }, "No zone is defined."));
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
    await request({ request: "zone", switch: on, do: "edit_and_commit", edits });
    edits.length = 0;
    draw();
  }
  const add = (event) => {
    event.preventDefault();
    const aliases = aliasesAfter(status?.committed.aliases ?? {}, edits);
    const [labels, edit] = EDITS[kind.value];
    if (labels.principals === "Principals" && !members(others.value).length) {
      result.className = "error";
      result.textContent = "A peer zone needs a principal; without one, all its members communicate.";
      return;
    }
    edits.push(edit({ name: name.value.trim(), members: list.value, principals: labels.principals ? others.value : "" }, aliases));
    list.value = others.value = "";
    draw();
  };
  fields();
  draw();
  read().catch((error) => { result.className = "error"; result.textContent = error.message; });
  app.on("changed", (tables) => { if (tables.includes("zone")) read().catch(() => {}); });
  return el("div", {}, section(here ? `Zones of ${here.label}` : "Zones", fabrics.length ? el("div", { class: "bar" }, el("label", {}, "Fabric ", choice)) : null, effective, names, known),
    section("Change", may ? null : el("p", { class: "note" }, "Your role permits a preview only."), el("form", { class: "bar", submit: add }, el("label", {}, "Edit ", kind), nameLabel, listLabel, othersLabel, el("button", { id: "add-edit" }, "Add to the edits")), pending, el("div", { class: "bar" }, show, commit, discard, undo), result, preview),
    section("Effective zones", tableOf(app, "zone", () => true, on)));
}
