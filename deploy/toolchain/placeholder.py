"""Stand-in for a heavy package that the toolchain's ONNX path imports by name but never computes with.

A module marked silent (the plotting of some options) accepts every call and draws nothing. Elsewhere every attribute
resolves to a class, so it serves as base class, annotation, ``isinstance`` target or dtype constant.
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


class _Silent:
    """Accepts every call, attribute and context, and does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __iter__(self):
        return iter((self, self))

    def __getitem__(self, key):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None


def silent(owner):
    """Return a module ``__getattr__`` for a module whose every function may do nothing."""
    nothing = _Silent()

    def resolve(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing

    return resolve


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
