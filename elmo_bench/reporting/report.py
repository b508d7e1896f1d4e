"""The files of a report; the same records give the same bytes.

README.md (the overview), replication.md (the paper's findings), a page per task, the tables of sweeps, studies.md,
report.html (one self-contained page without scripts), report.json and the picture of gains. Tables, records and
pictures can also be exported, for a paper and for pandas.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.configuration.pages import in_order
from elmo_bench.records import studies
from elmo_bench.records.frame import frame_of
from elmo_bench.records.record import Record
from elmo_bench.records.store import full_runs, read_all
from elmo_bench.records.studies import StudyRecord
from elmo_bench.records.times import COMPUTING, in_time, typical
from elmo_bench.reporting import charts, findings, score_tables, study_tables, sweep_tables
from elmo_bench.reporting.findings import RULE, UNTESTED, Evaluated, evaluated
from elmo_bench.reporting.gains import READING, Comparison, Scales, by_scale, compared, paper_gain, ranges
from elmo_bench.reporting.intervals import interval_text
from elmo_bench.reporting.section import Number, Section, page, pipes
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import read_text, write_bytes, write_text

WRITTEN = "Written by `elmo-bench report`"
INTRODUCTION = (
    f"{WRITTEN} from the records under `runs/`, one per finished run. Figures are percent, mean ± "
    "sample standard deviation over the seeds; dev is that of the selected epoch. A number belongs to its scale: "
    "numbers of different scales, or of different biLMs, are not comparable."
)
PAGE = re.compile(r"^- \[((?:(?:tasks|tables)/)?\w[\w.-]*\.md)\]", re.MULTILINE)  # in the list of the front page
MARKS = "<!-- tables: written by make report -->", "<!-- /tables -->"
VERDICTS = "<!-- verdicts -->", "<!-- /verdicts -->"


def refresh(results_root: str | Path, readme: Path | None = None) -> list[Section]:
    """Writes the files of the report from all records, and the tables and verdicts between `readme`'s markers.

    Pages of an earlier report whose runs are gone are removed. Nothing is written if any input of the report cannot be
    read.
    """
    report = Report(full_runs(read_all(results_root)), results_root)
    files = {Path(results_root) / name: text for name, text in report.files.items()}
    if readme is not None:
        text = embedded(read_text(readme), report.overview)
        sentences = [f"Scale {found[0].scale}: {findings.counts(found)}." for found in report.findings]
        sentences.append("A row is a finding at one task ([all of them](results/replication.md)).")
        files[readme] = between(text, VERDICTS, [" ".join(sentences)])
    front = Path(results_root) / "README.md"
    earlier = read_text(front) if front.is_file() else WRITTEN
    if WRITTEN not in earlier:
        raise UserError(f"not {WRITTEN[0].lower()}{WRITTEN[1:]}; move it away, or give another results_root", front)
    for path, text in files.items():
        write_text(path, text)
    for name in {*PAGE.findall(earlier)} - report.files.keys():
        (front.parent / name).unlink(missing_ok=True)
    return report.sections


class Report:
    """The report of some records, before it is written; for a user's own records, with the reference runs beside them.

    Attributes:
        scales, studies: the tasks of every scale, and the studies of the biLM.
        mains: the paper's comparison of every task, by scale.
        findings: the findings of each scale; for a user's own runs, only the tested ones.
        scored: for every task and scale the scores and, if something is compared, the gains.
        swept, studied: the tables of sweeps and of studies.
        overview, beside: the tasks side by side, and a user's own runs beside the reference runs.
        pictures: the paper's figures, by the names of their files without the ending.
    """

    def __init__(self, records: Sequence[Record], results_root: str | Path):
        own = not places.is_evidence(results_root)
        self.scales, self.studies = by_scale(records), studies.read_all(results_root)
        self.mains, self.overview = compared(self.scales), score_tables.overview(self.scales)
        beside = score_tables.beside(records) if own else []
        self.beside = [each for each in beside if score_tables.ALONE not in each.remarks]
        contents = sweep_tables.of_scales(self.scales)
        self.pictures = charts.pictures(contents)
        self._by_sweep = {name: sweep_tables.sections(content) for name, content in contents.items()}
        self.swept, self.studied = [*chain(*self._by_sweep.values())], [*map(study_tables.of_study, self.studies)]
        overlaps = study_tables.overlaps_of(self.studies)
        outcomes = chain(*self.scales.values())
        self.scored = [
            (each.task, [score_tables.scores(each, overlaps), *score_tables.gains_of(each)]) for each in outcomes
        ]
        self.findings: list[list[Evaluated]] = []
        for scale in dict.fromkeys([*self.scales, *sorted(study.scale for study in self.studies)]):
            found = evaluated(self.scales.get(scale, []), scale, self.studies)
            if own:
                found = [each._replace(rows=[row for row in each.rows if row.verdict != UNTESTED]) for each in found]
                found = [each for each in found if each.rows]
            self.findings += [found] if found else []

    @property
    def sections(self) -> list[Section]:
        """All tables."""
        return [*self.overview, *self.beside, *chain(*self._by_task.values()), *self.swept, *self.studied]

    @cached_property
    def _by_task(self) -> dict[str, list[Section]]:
        tasks = in_order({task for task, _ in self.scored})
        return {task: [*chain(*(parts for name, parts in self.scored if name == task))] for task in tasks}

    @cached_property
    def files(self) -> dict[str, str]:
        """The content of each file, by its path below the folder of results."""
        pages = {f"tasks/{task}.md": page(f"# {task}", *sections) for task, sections in self._by_task.items()}
        pages |= {name: page(*sections, title=True) for name, sections in self._by_sweep.items()}
        if self.studies:
            pages["studies.md"] = page("# Studies of the biLM", *self.studied)
        if self.findings:
            pages["replication.md"] = findings.markdown(self.findings, self.mains)
        parts = chapters(self) if self.scales or self.studies else []
        tables = [*self.overview, *self.beside]
        listed = "\n".join(f"- [{name}]({name})" for name in (*pages, "report.html"))
        words = [READING, listed] if tables else ["No run is recorded yet."]
        files = {"README.md": page("# Results", INTRODUCTION, *words, *tables), **pages, "report.json": data(parts)}
        files["report.html"] = html(parts, [here[0].note for here in self.scales.values()])
        if self.mains:
            picture = charts.gains("Gain of +ELMo over the baseline", self.mains)
            files["figures/gains.svg"] = charts.saved(picture, "svg").decode()
        return files


def embedded(text: str, sections: Sequence[Section]) -> str:
    """A page with these tables between its markers."""
    return between(
        text, MARKS, [part for each in sections for part in (each.note, pipes(each.header, each.rows), *each.remarks)]
    )


def between(text: str, marks: tuple[str, str], parts: Sequence[str]) -> str:
    """A page with these paragraphs between two markers, which it must have."""
    before, first, rest = text.partition(marks[0])
    _, last, after = rest.partition(marks[1])
    if not (first and last):
        raise UserError(f"lacks the markers {marks[0]} and {marks[1]}, between which the report writes")
    return f"{before}{first}\n\n{page(*parts)}\n{last}{after}"


# HTML and JSON.


def html(chapters: Sequence[Chapter], notes: Sequence[str]) -> str:
    """results/report.html; the notes describe the scales."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("elmo_bench.reporting"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"drawn": charts.inline, "code": _code}
    return environment.get_template("report.html").render(chapters=chapters, notes=notes)


def _code(text: str) -> Any:
    """A text with the words between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def data(chapters: Sequence[Chapter]) -> str:
    """results/report.json: tables with the ids of the runs behind each number, and the frames of the pictures."""

    def plain(cell: str) -> Any:
        if not isinstance(cell, Number):
            return cell
        return {"text": cell, "below": cell.below, "runs": [each.run for each in cell.runs]}

    def table(section: Section) -> dict[str, Any]:
        rows = [[*map(plain, row)] for row in section.rows]
        return dict(zip(Section._fields[:5], section, strict=False)) | {"rows": rows}

    listed = {
        chapter.anchor: {
            "title": chapter.title,
            "words": [*chapter.words, *chapter.more],
            "tables": [*map(table, chapter.tables)],
            "charts": [
                {"title": chart.title, "alt": chart.alt, "data": json_text.parse(chart.data.to_json(orient="split"))}
                for chart in chapter.charts
            ],
        }
        for chapter in chapters
    }
    return json_text.dumps(listed, ensure_ascii=False, indent=1) + "\n"


# The chapters of the page: the answer first, then the findings, tables and pictures.


class Chapter(NamedTuple):
    """A part of the page with a line in the list of contents.

    Attributes:
        words: paragraphs at the top.
        more: paragraphs in a fold, on how the numbers are computed.
    """

    anchor: str
    title: str
    words: Sequence[str]
    tables: Sequence[Section] = ()
    charts: Sequence[charts.Chart] = ()
    more: Sequence[str] = ()


BY_EPOCH = f"The weights s_j, which begin at an even share, and the scale γ after every epoch. {charts.BAND}"
SWEPT = "Mean ± sample standard deviation over the seeds, whose number stands in brackets."
PERCENT = (
    "Percent, mean ± sample standard deviation over the seeds; dev is that of the selected epoch. "
    "The seeds of a row open to its runs."
)


def chapters(report: Report) -> list[Chapter]:
    """The chapters of the page, the answer and the findings first; those without content are left out."""
    gains = [table for _, (_, *gains) in report.scored for table in gains]
    scores = [scores for _, (scores, *_) in report.scored]
    figures = [f"figures/figure1.{scale}." for scale in report.scales]
    by_share = {name: picture for each in figures for name, picture in report.pictures.items() if name.startswith(each)}
    words = [FRACTIONS if by_share else NO_FRACTIONS]
    chapters = [
        answer(report.scales),
        Chapter("beside", "Your runs, the reference runs and the paper", [], report.beside),
        _findings(report),
        Chapter("gains", "Gains with intervals", [], gains, more=[READING]),
        Chapter("sweeps", "The paper's tables, and other sweeps", [SWEPT], report.swept),
        Chapter("fractions", "Fewer examples (the paper's Figure 1)", words, charts=[*by_share.values()]),
        layer_weights(report.scales),
        Chapter("epochs", "Layer weights and γ over epochs", [BY_EPOCH], charts=_weights_by_epoch(report.mains)),
        Chapter("training", "Training curves", [charts.BAND], charts=_training(report.scales)),
        Chapter("scores", "Scores", [PERCENT], scores),
        cost(report.scales),
        Chapter("studies", "Studies of the biLM", [], report.studied, what_layers_hold(report.studies)),
    ]
    found = []
    for each in chapters:  # a table whose rows have only names is left out
        tables = [one for one in each.tables if any(cell.strip(" -–") for row in one.rows for cell in row[1:])]
        if tables or each.charts or each.anchor in ("answer", "fractions"):
            found.append(each._replace(tables=tables))
    return found


def _findings(report: Report) -> Chapter:
    """Each finding of the paper, ours, and a verdict; the numbers open to the runs behind them.

    Findings that no run tests yet are in separate tables, with the command that tests them.
    """
    words, tested, untested, families = [], [], [], []
    for found in report.findings:
        scale = found[0].scale
        words.append(f"Scale {scale}: {findings.counts(found)}.")
        if corrected := findings.families(found, report.mains.get(scale, [])):
            families.append(f"Scale {scale}. {corrected}")
        open_ones = [each for each in found if all(row.verdict == UNTESTED for row in each.rows)]
        if len(open_ones) < len(found):
            tested.append(findings.glance([each for each in found if each not in open_ones]))
        rows = [
            (
                f"{each.finding.finding} ({each.finding.where})",
                "; ".join(f"{task or 'biLM'} {figure}".strip() for task, figure in each.finding.paper.items()),
                each.command,
            )
            for each in open_ones
        ]
        untested.append(Section(f"Scale {scale}: not tested", "", ("finding", "the paper", "command"), rows))
    more = [RULE.replace("*", ""), *families] if families else []
    return Chapter("findings", findings.TITLE, words, [*tested, *untested], more=more)


# The first screen: does ELMo help, where, and how certain is that?

NOTE = (
    "Gain of +ELMo over the baseline on test, in points, with its 95 % interval; below it the two scores. "
    "Both arms have the same word vectors, pre-trained as in the paper. "
    "Clear: the interval is above zero. A number opens to the runs behind it."
)


def answer(scales: Scales) -> Chapter:
    """A few sentences and a picture for each scale, and in a fold one table of all tasks."""
    found, by_task = compared(scales), dict[str, dict[str, Comparison]]()
    missing = [f"Scale {scale}. {line}" for scale, each in scales.items() for line in score_tables.not_recorded(each)]
    for scale, mains in found.items():
        for main in mains:
            by_task.setdefault(main.task, {})[scale] = main
    rows = []
    for task in in_order(by_task):
        mains = by_task[task]
        cells = (_gain_cell(mains[scale]) if scale in mains else "" for scale in found)
        rows.append((task, *cells, paper_gain(next(iter(mains.values())).treated.first)))
    header = "task", *(f"scale {scale}" for scale in found), "the paper"
    table = Section("The gains as a table", NOTE, header, rows, narrow=True)
    words = [_sentences(*each) for each in found.items()] or ["No task has recorded runs with and without ELMo."]
    drawn = [
        charts.gains(f"Gains with 95 % intervals, scale {scale}", {scale: mains}) for scale, mains in found.items()
    ]
    return Chapter("answer", "Does ELMo help, where, and how sure is that?", [*words, *missing], [table], drawn)


def _sentences(scale: str, mains: Sequence[Comparison]) -> str:
    by_gain = sorted(mains, key=lambda each: each.test.mean)
    lowest, *_, highest = 2 * [f"{each.test.mean:+.2f}" for each in by_gain]
    higher = sum(each.test.mean > 0 for each in mains)
    by_verdict = {key: [each.title for each in mains if each.test.verdict == key] for key in MEANING}
    spread = f"{lowest} ({by_gain[0].title}) to {highest} points ({by_gain[-1].title})"
    if lowest == highest:
        spread = f"{highest} points ({', '.join(each.title for each in mains)})"
    return " ".join([
        f"Scale {scale}: +ELMo scores higher than the baseline on {higher} of {len(mains)} "
        f"{'task; the gain is' if len(mains) == 1 else 'tasks; the gains are'} {spread}.",
        *(f"{MEANING[key]}: {', '.join(tasks)}." for key, tasks in by_verdict.items() if tasks),
        *score_tables.context_remark(mains),
    ])  # fmt: skip


MEANING = {
    "clear": "The 95 % interval is above zero for",
    "not shown": "The 95 % interval includes zero for",
    "worse": "The 95 % interval is below zero for",
    "one seed": "One seed, which says nothing about other seeds",
    "no interval": "Without an interval",
}


def _gain_cell(main: Comparison) -> Number:
    gain, arms = main.test, (main.control, main.treated)
    ends = interval_text(gain.interval)
    sure = f"{ends}, {gain.verdict}" if len({*ends.split(" to ")}) > 1 else gain.verdict  # equal ends mean no interval
    scores, seeds = " → ".join(arm.mean().partition(" ")[0] for arm in arms), min(gain.seeds)
    context = f"{score_tables.CONTEXT} {main.context}" if main.context else ""
    lines = [sure, scores + (f", {seeds} seeds" if seeds > 1 else ""), context, main.changes]
    runs = [run for arm in reversed(arms) for run in arm.runs()]
    return Number(f"{gain.mean:+.2f}", runs, below=tuple(filter(None, lines)))


FRACTIONS = (
    "Scores with a part of the training data, drawn by the seed; a smaller part is contained in a larger. Dots are "
    "means over the seeds; bars are their 95 % intervals, over seeds and examples."
)
NO_FRACTIONS = (
    "No run on a part of the training data is recorded yet. In a checkout, make figure N=1 TASK=all runs them."
)


# The paper's Figure 2, and the weights and scores by epoch.

FIGURE_2 = (
    "The weights s_j of the biLM's layers, which sum to one, at the selected epoch, means over the seeds. Layer 0 "
    "encodes characters, layers 1 and above are LSTMs. The paper hatches weights below an even share (▼: below 1/3) "
    "and speckles those above twice that (▲)."
)


def layer_weights(scales: Scales) -> Chapter:
    """The paper's Figure 2, for each scale.

    It shows +ELMo with the task's configuration; for other places, runs that change only the place; and in separate
    pictures the sources of layers that are no biLM, with the scale's word vectors.
    """
    drawn = []
    for scale, outcomes in scales.items():
        by_source: dict[str, dict[str, list[float]]] = {}
        for group in (
            group for each in outcomes for group in [*([each.main.treated] if each.main else []), *each.groups]
        ):
            run = group.first
            source = "" if run.from_bilm or run.variant.keys() - {"bilm"} else f" of {run.bilm_name}"
            if run.has_elmo and (source or not run.variant.keys() - {"elmo.where"}):
                for place in run.layer_weights:
                    by_source.setdefault(source, {}).setdefault(f"{run.task} {place}", group.weights(place)[:-1])
        for source, rows in sorted(by_source.items()):
            drawn.append(charts.weights(f"Weights of the layers{source}, scale {scale}", rows))
    return Chapter("layers", "Weights of the layers (the paper's Figure 2)", [FIGURE_2], charts=drawn)


def _weights_by_epoch(mains: Mapping[str, Sequence[Comparison]]) -> list[charts.Chart]:
    """s_j of every layer, and γ, after each epoch, at each place where ELMo enters the model."""
    drawn = []
    for group in (main.treated for found in mains.values() for main in found):
        for place, epochs in group.first.layer_weights.items():
            lines = {f"s_{j}": [[s[j] for s in run.layer_weights[place]] for run in group.records]
                     for j in range(len(epochs[0]))}  # fmt: skip
            lines["γ"] = [run.gamma[place] for run in group.records]
            title = f"{group.first.task}, scale {group.first.scale}, {place}"
            drawn.append(charts.over_epochs(title, "s_j and γ", lines))
    return drawn


def _training(scales: Scales) -> list[charts.Chart]:
    """The score on dev after each epoch, for the arms of each task and scale."""
    drawn = []
    for each in (each for here in scales.values() for each in here if each.arms):
        score = f"dev {each.metric}"
        lines = {arm.name: [run.history.get(f"dev.{each.metric}", []) for run in arm.records] for arm in each.arms}
        drawn.append(charts.over_epochs(f"{each.task}, scale {each.scale}: {score}", score, lines))
    return [chart for chart in drawn if len(chart.data)]


def what_layers_hold(studies: Sequence[StudyRecord]) -> list[charts.Chart]:
    """The results of Tables 5 and 6 by layer: a picture for each scale and measure with several sources."""
    measured: dict[tuple[str, str], list[tuple]] = {}
    for study, cell in ((each, cell) for each in studies for cell in each.cells):
        if cell.layer is not None and cell.minus is None and cell.n and isinstance(cell.value, float):
            row = cell.source, cell.layer, cell.value, cell.low, cell.high
            measured.setdefault((study.scale, f"{study.what} ({cell.quantity})"), []).append(row)
    return [
        charts.curves(f"What each layer holds, scale {scale}: {what}", "layer", what, dict.fromkeys(rows), points=True)
        for (scale, what), rows in measured.items()
        if len({source for source, *_ in rows}) > 2
    ]


# Time, speed, memory and machine of every arm.

COST = ("arm", "seeds", "computing a run", "tokens a second", "peak memory", "parameters", "device")
COLUMNS = {"tokens_per_second": "{:,.0f}", "peak_memory_mib": "{:,.0f} MiB", "parameters": "{:,.0f}"}
WORDS = f"Means over the seeds, of arms without variants. A time opens to its runs. {COMPUTING}"


def cost(scales: Scales) -> Chapter:
    """The hours of every scale, and a table for each task at it."""
    words, tables = [], []
    for scale, outcomes in scales.items():
        records = [record for outcome in outcomes for record in outcome.records]
        took = in_time(sum(record.device_seconds for record in records))
        dirty = sum(bool(record.dirty) for record in records)
        changed = f" {dirty} of them: code with uncommitted changes." if dirty else ""
        words.append(f"Scale {scale}: {len(records)} recorded runs took {took} of computing together.{changed}")
        for outcome in outcomes:
            rows = []
            for group in (group for group in outcome.groups if not group.first.variant):
                runs = group.runs(*(in_time(record.device_seconds) for record in group.records))
                machines = (record.machine for record in group.records)
                devices = {
                    f"{m.get('gpu') or m['cpu']}, {m['accelerator']}, {m['threads']} of {m['cores']} cores"
                    for m in machines
                }
                seeds, time = ranges([record.seed for record in group.records]), in_time(typical(group.records))
                means = (group.mean_of(*each) for each in COLUMNS.items())
                rows.append((group.name, seeds, Number(time, runs), *means, "; ".join(sorted(devices))))
            tables.append(Section(f"{outcome.task}, scale {scale}", "", COST, rows))
    return Chapter("cost", "Cost", [*words, WORDS], tables)


# Files for a paper and for pandas: CSV and parquet, LaTeX (booktabs) and Markdown.

MATHS = {"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "→": r"$\rightarrow$", "≥": r"$\geq$", "≤": r"$\leq$",
         "γ": r"$\gamma$", "σ": r"$\sigma$", "α": r"$\alpha$", "ρ": r"$\rho$", "λ": r"$\lambda$"}  # fmt: skip
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{sign: rf"\{sign}" for sign in "&%$#_{}"}, **MATHS,
})  # fmt: skip


def export(records: Sequence[Record], results_root: Path, output: Path) -> list[Path]:
    """Writes runs.csv and runs.parquet, a row for each run, split and metric, each table as .tex and .md, and the
    paper's figures as .svg and .pdf.
    """
    table, named, report = frame_of(records), Counter[str](), Report(records, results_root)
    contents = {"runs.csv": table.to_csv(index=False).encode(), "runs.parquet": table.to_parquet(index=False)}
    contents |= charts.files(report.pictures)
    for section in report.sections:
        stem = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")[:80]
        named[stem] += 1
        name = f"tables/{stem}" + (f"-{named[stem]}" if named[stem] > 1 else "")
        contents |= {f"{name}.tex": latex(section).encode(), f"{name}.md": page(section).encode()}
    for name, content in contents.items():
        write_bytes(output / name, content)
    return [output / name for name in contents]


def latex(section: Section) -> str:
    r"""A table as LaTeX, for \usepackage{booktabs}: the title as its caption, note and remarks as comments."""
    from pandas import DataFrame

    rows = [[_tex(cell) for cell in row] for row in section.rows]
    frame = DataFrame(rows, columns=range(len(section.header)))
    body = frame.to_latex(
        index=False, header=list(map(_tex, section.header)), escape=False, caption=_tex(section.title),
        column_format="l" + "r" * (len(section.header) - 1), position="t",
    )  # fmt: skip
    comments = (line for text in (section.note, *section.remarks) for line in text.splitlines())
    return "".join(f"% {line}\n" for line in comments) + body


def _tex(cell: str) -> str:
    return " ".join(cell.replace("`", "").split()).translate(LATEX)
