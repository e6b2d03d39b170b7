"""Stand-in for a heavy package that the toolchain's ONNX path imports by name but never computes with.

Every attribute resolves to a class, so it serves as base class, annotation, ``isinstance`` target or dtype constant.
Making an object of it raises, so nothing can silently compute with a stand-in. Names listed as harmless are functions
that may be called while importing: they accept anything and, used as a decorator, return the decorated function.
"""


class _Resolving(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = _stand_in(f"{cls.__module__}.{cls.__name__}", name)
        setattr(cls, name, made)
        return made


def _stand_in(owner, name):
    def refuse(self, *args, **kwargs):
        raise RuntimeError(f"{owner}.{name} is a placeholder: the real package is not installed in this toolchain")

    return _Resolving(name, (), {"__module__": owner, "__init__": refuse})


def _accept(*args, **kwargs):
    return lambda function=None, *more, **named: function


def resolver(owner, harmless):
    """Return a module ``__getattr__`` for the module named ``owner``."""
    made = {}

    def resolve(name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in made:
            made[name] = _accept if name in harmless else _stand_in(owner, name)
        return made[name]

    return resolve
