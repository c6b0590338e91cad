"""Open articles live through a deployment: today's code takes every recorded decision as it was taken."""

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from tests.replay.hasty import HastyArticle
from tests.replay.record import FOLDER, SCENARIOS
from workflows.article import ArticleWorkflow
from workflows.campaign import CampaignWorkflow
from workflows.correction import CorrectionWorkflow

HISTORIES = sorted(FOLDER.glob("*.json"))


def history(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(path.stem, path.read_text())


def test_every_scenario_was_recorded_and_some_have_a_second_run() -> None:
    recorded = {path.stem.rpartition("-")[0] for path in HISTORIES}
    assert recorded == {scenario.__name__ for scenario in SCENARIOS}
    assert {"monitored_for_days-2", "campaign-2"} <= {path.stem for path in HISTORIES}


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_run_is_taken_up_by_todays_code(path: Path) -> None:
    replayer = Replayer(
        workflows=[ArticleWorkflow, CampaignWorkflow, CorrectionWorkflow],
        data_converter=pydantic_data_converter,
    )
    await replayer.replay_workflow(history(path))


async def test_a_change_that_open_articles_could_not_follow_is_noticed() -> None:
    replayer = Replayer(
        workflows=[HastyArticle],
        data_converter=pydantic_data_converter,
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    with pytest.raises(NondeterminismError):
        await replayer.replay_workflow(history(FOLDER / "straight-1.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_recording_names_neither_machine_nor_folder(path: Path) -> None:
    text = path.read_text()
    assert not [trace for trace in ("stackTrace", 'File \\"', "@") if trace in text]
