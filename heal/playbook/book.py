"""The book: asks each rule in turn.  A rule is one file of this package with NAME, ORDER and look(case)."""

import importlib
import logging
import pkgutil
from types import ModuleType

from heal import playbook
from heal.playbook.case import Case, Verdict

log = logging.getLogger("cron-heal")


def look(case: Case) -> Verdict | None:
    """The first rule's answer, None when no rule knows the case.  A rule that fails is passed over."""
    for rule in _rules():
        try:
            verdict: Verdict | None = rule.look(case)
        except Exception:
            log.exception("[cron-heal] the rule %s failed", rule.NAME)
            continue
        if verdict is not None:
            return verdict
    return None


def _rules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(playbook.__path__)]
    modules = [importlib.import_module(f"{playbook.__name__}.{name}") for name in names]
    return sorted((module for module in modules if hasattr(module, "look") and hasattr(module, "ORDER")), key=_order)


def _order(rule: ModuleType) -> int:
    order: int = rule.ORDER
    return order
