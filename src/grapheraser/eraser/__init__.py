"""The spine of every task: fit, plan, unlearn, update, verify, save, load, receipts."""

from grapheraser.eraser.base import Eraser
from grapheraser.eraser.load import load_eraser
from grapheraser.eraser.settings import closed_form
from grapheraser.eraser.task import Task

__all__ = ["Eraser", "Task", "closed_form", "load_eraser"]
