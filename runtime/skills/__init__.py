"""Skills: instructions for one kind of task, in the agentskills.io format, found in several places.

Source of the rules: https://agentskills.io/specification. Skills of pi, Claude and nanobot work as they are.

Laws: a bad skill is reported and the others stand; of two skills with one name the later root's counts; order
depends on names alone; a skill that lacks something is listed for people and kept from the model. Parsing is pure;
finding and reading block.
"""

from .faults import MAX_DESCRIPTION
from .files import read_skill_file, skill_files
from .finding import MAX_SKILL_CHARACTERS, SkillRoot, Skills, collect_skills, list_skill_files, load_skills, skill_roots
from .front_matter import parse_front_matter, split_front_matter
from .requirements import Around, Requirements, missing, this_machine
from .skill import SKILL_FILE, Skill, Source, parse_skill

__all__ = [
    "MAX_DESCRIPTION",
    "MAX_SKILL_CHARACTERS",
    "SKILL_FILE",
    "Around",
    "Requirements",
    "Skill",
    "SkillRoot",
    "Skills",
    "Source",
    "collect_skills",
    "list_skill_files",
    "load_skills",
    "missing",
    "parse_front_matter",
    "parse_skill",
    "read_skill_file",
    "skill_files",
    "skill_roots",
    "split_front_matter",
    "this_machine",
]
